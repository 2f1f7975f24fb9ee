"""EnvPool: vectorized environments in C++."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dm_env import specs

from repertory.components.runtime import stacked_array
from repertory.environments.adapters import extras, gymnasium_sources
from repertory.environments.batches import mask_check, vector_batch
from repertory.environments.batches.layout import Nest
from repertory.environments.registry import name_options
from repertory.environments.values import argument_checks

OPTIONS = (
  name_options.Option(
    'threads', 0, "Threads per batch; 0 for EnvPool's default", maximum=1024
  ),
  name_options.Option(
    'action_mask', None, 'Key of the action mask, also in the info', kind=str
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
    if pool.config['max_num_players'] > 1:
      raise argument_checks.ArgumentError(
        'id',
        f'expected a game of one player, got {environment_id!r} of '
        f'{pool.config["max_num_players"]}.',
      )
    super().__init__(pool, len(seeds), spaces)
    self._mask_name = settings['action_mask']
    spec = self.observation_spec
    self._is_leaf = isinstance(spec, Mapping) and self._mask_name in spec
    if self._mask_name is not None:
      mask_spec = mask_check.spec_of(self.action_spec)
      if self._is_leaf:
        leaf = spec[self._mask_name]
        mask_spec = specs.Array(leaf.shape, np.bool_, leaf.name)
      self.observation_spec = mask_check.name_mask(
        spec, self._mask_name, mask_spec
      )

  def reset(self) -> Nest:
    return self._with_mask(super().reset())

  def step(self, actions, ended):
    result = super().step(actions, ended)
    return result._replace(observation=self._with_mask(result.observation))

  def _with_mask(self, observation: Nest) -> Nest:
    if self._mask_name is None:
      return observation
    found = observation if self._is_leaf else self._infos
    if self._mask_name not in found:
      raise vector_batch.EnvironmentContractError(
        f'expected {self._mask_name!r} in the info, found the keys '
        f'{list(self._infos)}.'
      )
    mask = found[self._mask_name].astype(np.bool_)
    return mask_check.name_mask(observation, self._mask_name, mask)

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
    number = self._env.config.get('stack_num', 1)
    spec = stacked_array.StackedArray(
      shape, np.uint8, 0, 255, leaf.name, 1 if channel % number else number
    )
    return spec, gymnasium_sources.move_channels_last
