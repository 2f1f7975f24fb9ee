"""EnvPool: vectorized environments in C++."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments.adapters import (
  extras,
  gymnasium_results,
  gymnasium_spaces,
)
from repertory.environments.batches import channels, layout, vector_batch
from repertory.environments.batches import seeds as seeds_lib
from repertory.environments.batches.layout import Nest
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


class EnvPoolSource(gymnasium_results.GymnasiumOutcomes):
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
      self._pool = envpool.make_gymnasium(
        environment_id,
        num_envs=len(seeds),
        num_threads=settings['threads'],
        seed=seeds_lib.combine(seeds),
      )
      observation_space = self._pool.observation_space
      action_space = self._pool.action_space
    self._size = len(seeds)
    self._infos: Mapping[str, Any] = {}
    self._observation = gymnasium_spaces.make_batch_codec(
      observation_space, 'observation_space'
    )
    self._action = gymnasium_spaces.make_batch_codec(
      action_space, 'action_space'
    )
    leaves = layout.NestLayout(self._observation.spec, 'observation')
    self._layout = leaves
    self._moves = [_move_of(spec) for spec in leaves.specs]
    self._is_array = isinstance(self._observation.spec, specs.Array)
    self._observation_spec = leaves.unflatten(
      [_move_spec(spec) for spec in leaves.specs]
    )

  @property
  def batch_size(self) -> int:
    """The number of slots, B."""
    return self._size

  def observation_spec(self) -> Nest:
    """Returns the nest of specs of the observation space."""
    return self._observation_spec

  def action_spec(self) -> Nest:
    """Returns the nest of specs of the action space."""
    return self._action.spec

  def reset(self) -> Nest:
    """Starts all episodes."""
    return self._decode(self._pool.reset()[0])

  def step(
    self, actions: Nest, ended: np.ndarray | None
  ) -> vector_batch.StepResult:
    """Steps or restarts each slot; the pool restarts ended ones itself."""
    actions = self._action.encode(actions)
    results = self._pool.step(actions)
    observation, rewards, terminated, truncated, self._infos = results
    return self.to_outcome(
      self._decode(observation), rewards, terminated, truncated, ended
    )

  def info(self, slot: int) -> Mapping[str, Any]:
    """Returns EnvPool's info of the last step of a slot."""
    return gymnasium_results.info_of(self._infos, slot)

  def close(self) -> None:
    """Stops the threads; the pool must not be referenced elsewhere."""
    del self._pool

  def _decode(self, observation: Any) -> Nest:
    nest = self._observation.decode(observation)
    if self._is_array:
      return self._moves[0](nest)
    return self._layout.map(self._moves, nest)


def _import_envpool() -> Any:
  """Imports envpool without the deprecation notice of gym."""
  with quieting.discarded_stderr():
    return extras.import_extra('envpool', 'envpool')


def _is_image(spec: specs.Array) -> bool:
  """Returns whether a leaf is an image with its channels first."""
  # The images of CarRacing have their channels last already.
  is_image = len(spec.shape) == 3 and spec.dtype == np.uint8
  return is_image and spec.shape[2] != 3


def _move_of(spec: specs.Array):
  return channels.move_last if _is_image(spec) else lambda array: array


def _move_spec(spec: specs.Array) -> specs.Array:
  if spec.dtype.kind == 'f':
    # Some bounds are wrong: positions of the Control Suite fall below their 0.
    return specs.Array(spec.shape, spec.dtype, spec.name)
  if not _is_image(spec):
    return spec
  channel, height, width = spec.shape
  shape = (height, width, channel)
  return specs.BoundedArray(shape, np.uint8, 0, 255, spec.name)
