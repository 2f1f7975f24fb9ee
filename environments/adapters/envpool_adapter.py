"""EnvPool: vectorized environments in C++."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments.adapters import extras, gymnasium_sources
from repertory.environments.registry import name_options
from repertory.environments.values import argument_checks

OPTIONS = (
  name_options.Option(
    'threads', 0, "Threads per batch; 0 for EnvPool's default", maximum=1024
  ),
)


class EnvPoolSource(gymnasium_sources.VectorEnvSource):
  """EnvPool as a `vector_batch.VectorSource`.

  It uses EnvPool's Gymnasium interface: the dm_env interface gives truncated
  and terminated episodes the same discount of 0. Images `[C, H, W]` of uint8
  become `[H, W, C]`.
  """

  render: Any = None

  def __init__(
    self,
    environment_id: str,
    settings: Mapping[str, Any],
    seeds: Sequence[int],
  ):
    """Makes the pool of an id, with a value for each of `OPTIONS`.

    A pool has a single seed, made of those of all slots, so the episodes of a
    slot depend on the whole batch.
    """
    extras.silence_gym()  # EnvPool imports it.
    envpool = extras.import_extra('envpool', 'envpool')
    argument_checks.check_known('id', environment_id, envpool.list_all_envs())
    # EnvPool casts float64 bounds to float32, and warns.
    with extras.ignored_warnings('.*precision lowered by casting.*'):
      pool = envpool.make_gymnasium(
        environment_id,
        num_envs=len(seeds),
        num_threads=settings['threads'],
        seed=argument_checks.combine_seeds(seeds),
      )
      spaces = pool.observation_space, pool.action_space
    super().__init__(pool, len(seeds), spaces)

  def close(self) -> None:
    """Stops the threads; the pool must not be referenced elsewhere."""
    del self._env

  def _converted(self, leaf: specs.Array) -> tuple[specs.Array, Any]:
    if leaf.dtype.kind == 'f':
      # Some bounds are wrong, such as 0 of positions in the Control Suite.
      leaf = specs.Array(leaf.shape, leaf.dtype, leaf.name)
    is_image = len(leaf.shape) == 3 and leaf.dtype == np.uint8
    # The images of CarRacing have their channels last already.
    if not is_image or leaf.shape[2] == 3:
      return leaf, lambda array: array  # EnvPool returns new arrays.
    channel, height, width = leaf.shape
    shape = (height, width, channel)
    spec = specs.BoundedArray(shape, np.uint8, 0, 255, leaf.name)
    return spec, gymnasium_sources.move_channels_last
