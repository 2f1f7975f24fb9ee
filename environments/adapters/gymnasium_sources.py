"""Gymnasium's vector environments as sources of batches."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments.adapters import gymnasium_adapter, gymnasium_spaces
from repertory.environments.batches import layout, vector_batch
from repertory.environments.batches.layout import Nest
from repertory.environments.rendering import rendering
from repertory.environments.values import argument_checks, casting

# For smaller batches, a loop is faster than NumPy arrays.
_MIN_VECTOR_SIZE = 8


def make_source(
  environment_id: str, seeds: Sequence[int], **settings: Any
) -> 'VectorEnvSource | None':
  """Makes Gymnasium's NumPy vector environment of an id, as of CartPole.

  It has a single seed, made of those of all slots, so the episodes of a slot
  depend on the whole batch. None without one, or if a loop over
  `gymnasium_adapter.make` is faster.
  """
  environment_id = gymnasium_adapter.register(environment_id)
  gymnasium = gymnasium_spaces.import_gymnasium()
  spec: Any = gymnasium.registry.get(environment_id)
  if len(seeds) < _MIN_VECTOR_SIZE or spec is None:
    return None
  if spec.vector_entry_point is None or spec.additional_wrappers:
    return None
  mode = gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
  vector_env = gymnasium.make_vec(environment_id, len(seeds), mode, **settings)
  metadata = vector_env.metadata
  next_step = gymnasium.vector.AutoresetMode.NEXT_STEP
  # Those of JAX block all slots while one restarts.
  if metadata.get('autoreset_mode') is not next_step or metadata.get('jax'):
    vector_env.close()
    return None
  spaces = vector_env.single_observation_space, vector_env.single_action_space
  seed = argument_checks.combine_seeds(seeds)
  return VectorEnvSource(vector_env, len(seeds), spaces, seed)


class VectorEnvSource(vector_batch.VectorSource):
  """A vector environment of Gymnasium's interface.

  An ended slot is restarted by the next step, as in dm_env: then the last
  observation of an episode is that of its end.
  """

  def __init__(
    self, env: Any, size: int, spaces: Sequence[Any], seed: int | None = None
  ):
    """Takes ownership of `size` slots, and seeds their first reset.

    `spaces` are the observation and action space of one slot.
    """
    self._env, self._seed = env, seed
    self._infos: Mapping[str, Any] = {}
    observation, action = (
      gymnasium_spaces.make_codec(space, name, is_batch=True)
      for space, name in zip(spaces, ('observation_space', 'action_space'))
    )
    self._shift, self._encode = observation.decode, action.encode
    nest = layout.NestLayout(observation.spec, 'observation')
    leaves, copies = zip(*map(self._converted, nest.specs))
    self._copy = nest.mapper(copies)
    super().__init__(size, nest.unflatten(leaves), action.spec)

  def _converted(self, leaf: specs.Array) -> tuple[specs.Array, Any]:
    """Returns the spec of a leaf, and a function that copies it, `[B, ...]`."""
    # The environments may reuse their buffers.
    return leaf, np.array

  def reset(self) -> Nest:
    settings = {} if self._seed is None else {'seed': self._seed}
    self._seed = None
    observation, self._infos = self._env.reset(**settings)
    return self._copy(self._shift(observation))

  def step(self, actions, ended):
    results = self._env.step(self._encode(actions))
    observation, rewards, terminated, truncated, self._infos = results
    observation = self._copy(self._shift(observation))
    return to_step_result(observation, rewards, terminated, truncated, ended)

  def info(self, slot: int) -> Mapping[str, Any]:
    """Returns the info of the last step of a slot."""
    # A mask `_<name>` marks the slots that have an entry.
    return {
      name: values[slot]
      for name, values in self._infos.items()
      if isinstance(values, np.ndarray)
      and not name.startswith('_')
      and (f'_{name}' not in self._infos or self._infos[f'_{name}'][slot])
    }

  def render(self, slots: Sequence[int]) -> rendering.Frames:
    # It renders all slots.
    drawn = gymnasium_adapter.draw(self._env)
    return [drawn[slot] for slot in slots]

  @property
  def render_fps(self) -> float | None:
    """Frames per second of a slot's video; None if not defined."""
    return self._env.metadata.get('render_fps')

  def close(self) -> None:
    self._env.close()


def to_step_result(
  observation: Nest,
  rewards: np.ndarray,
  terminated: np.ndarray,
  truncated: np.ndarray,
  ended: np.ndarray | None,
) -> vector_batch.StepResult:
  """Converts the results of a step of a vector environment."""
  for name, flags in ('terminated', terminated), ('truncated', truncated):
    if getattr(flags, 'dtype', None) != np.bool_:
      raise vector_batch.EnvironmentContractError(
        f'{name}: expected an array of bools, found {casting.shorten(flags)}.'
      )
  if ended is not None:
    continues = ~ended
    rewards = np.where(continues, rewards, 0)
    terminated, truncated = terminated & continues, truncated & continues
  if not casting.fits_single(rewards):
    for slot in np.flatnonzero(~(np.abs(rewards) <= casting.MAX_SINGLE)):
      raise vector_batch.SlotError(
        int(slot),
        f'reward: expected a finite number of float32, found {rewards[slot]}',
      )
  # A copy, because the environment may change its array.
  rewards = rewards.astype(np.float32)
  discounts = last = None
  if terminated.any():
    discounts, last = ~terminated, terminated | truncated
  elif truncated.any():
    last = truncated.copy()
  return vector_batch.StepResult(observation, rewards, discounts, last)


def move_channels_last(images: np.ndarray) -> np.ndarray:
  """Copies `[B, C, H, W]` to `[B, H, W, C]`.

  One write per channel is several times as fast as NumPy's general copy.
  """
  batch_size, num_channels, height, width = images.shape
  moved = np.empty((batch_size, height, width, num_channels), images.dtype)
  for channel in range(num_channels):
    moved[..., channel] = images[:, channel]
  return moved
