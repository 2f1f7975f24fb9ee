"""EnvPool: vectorized environments in C++."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments.adapters import extras, gymnasium_sources
from repertory.environments.batches import seeds as seeds_lib
from repertory.environments.registry import close_names, name_options
from repertory.environments.rendering import quieting

OPTIONS = (
  name_options.Option(
    'threads', 0, "Threads per batch; 0 for EnvPool's default", maximum=1024
  ),
)


def ids() -> list[str]:
  """Returns the ids of all environments, such as 'CartPole-v1'.

  Raises:
    ImportError: If envpool is not installed.
  """
  return _import_envpool().list_all_envs()


class EnvPoolSource(gymnasium_sources.VectorEnvSource):
  """EnvPool as a `vector_batch.VectorSource`.

  It uses EnvPool's Gymnasium interface: the dm_env interface gives truncated
  and terminated episodes the same discount of 0. Images `[C, H, W]` of uint8
  become `[H, W, C]`.
  """

  def __init__(
    self,
    environment_id: str,
    settings: Mapping[str, Any],
    seeds: Sequence[int],
  ):
    """Makes the pool.

    Args:
      environment_id: See `ids`.
      settings: A value for each of `OPTIONS`.
      seeds: One per slot. A pool has a single seed, made of all of them, so the
        episodes of a slot depend on the whole batch.

    Raises:
      ImportError: If envpool is not installed.
      ValueError: If the id is unknown, or if a space cannot become a spec.
    """
    envpool = _import_envpool()
    close_names.check('id', environment_id, envpool.list_all_envs())
    # EnvPool casts float64 bounds to float32, and warns.
    with quieting.ignored_warnings('.*precision lowered by casting.*'):
      pool = envpool.make_gymnasium(
        environment_id,
        num_envs=len(seeds),
        num_threads=settings['threads'],
        seed=seeds_lib.combine(seeds),
      )
      spaces = pool.observation_space, pool.action_space
    super().__init__(pool, len(seeds), *spaces)

  def close(self) -> None:
    """Stops the threads; the pool must not be referenced elsewhere."""
    del self._env

  def _converter(self, leaf: specs.Array) -> Any:
    # EnvPool returns new arrays.
    if _is_image(leaf):
      return gymnasium_sources.move_channels_last
    return lambda array: array

  def _converted_spec(self, leaf: specs.Array) -> specs.Array:
    if leaf.dtype.kind == 'f':
      # Some bounds are wrong: positions of the Control Suite fall below their
      # 0.
      return specs.Array(leaf.shape, leaf.dtype, leaf.name)
    if not _is_image(leaf):
      return leaf
    channel, height, width = leaf.shape
    shape = (height, width, channel)
    return specs.BoundedArray(shape, np.uint8, 0, 255, leaf.name)


def _import_envpool() -> Any:
  """Imports envpool without the deprecation notice of gym."""
  with quieting.discarded_stderr():
    return extras.import_extra('envpool', 'envpool')


def _is_image(spec: specs.Array) -> bool:
  """Returns whether a leaf is an image with its channels first."""
  # The images of CarRacing have their channels last already.
  is_image = len(spec.shape) == 3 and spec.dtype == np.uint8
  return is_image and spec.shape[2] != 3
