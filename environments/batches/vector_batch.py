"""Environment batch on top of a vectorized source of environments."""

import abc
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import dm_env
import numpy as np
from dm_env import specs

from repertory.components.runtime import mask_layouts
from repertory.environments.batches import layout
from repertory.environments.batches.layout import Nest
from repertory.environments.rendering import rendering
from repertory.environments.wrappers import (
  environment_wrapper,
  single_precision,
)

EnvironmentContractError = layout.EnvironmentContractError

_FIRST, _MID, _ = (int(step_type) for step_type in dm_env.StepType)


class SlotError(ValueError):
  """Raised if values of `slot` violate the specs; `advice` may be ''."""

  def __init__(
    self,
    slot: int,
    message: str,
    advice: str = 'Make the environment keep to its specs, or wrap it.',
  ):
    super().__init__(message)
    self.slot = slot
    self.advice = advice


class StepResult(NamedTuple):
  """Result of one step of a source.

  Attributes:
    observation: Nest of arrays `[B, ...]`.
    rewards: `[B]`, finite; 0 where a slot was restarted.
    discounts: `[B]`, in [0, 1], and 1 where a slot was restarted; None if all
      are 1.
    last: `[B]`, bool, True where the timestep is LAST; False where a slot was
      restarted. None if no timestep is LAST.
  """

  observation: Nest
  rewards: np.ndarray
  discounts: np.ndarray | None
  last: np.ndarray | None


class VectorSource(abc.ABC):
  """Base class of B environments of one kind that step together.

  Arrays have a leading `[B]` and are new in each call. A source may have a
  `render` of slots, see `rendering`.
  """

  def __init__(
    self,
    batch_size: int,
    observation_spec: Nest,
    action_spec: Nest,
    reward_spec: specs.Array | None = None,
    discount_spec: specs.Array | None = None,
  ):
    """Sets the size, and the specs of one environment, without `[B]`.

    Args:
      batch_size: Number of slots, B.
      observation_spec: Nest of specs, possibly of double precision.
      action_spec: Nest of specs, possibly of double precision.
      reward_spec: Spec of shape `()`; None for any float32.
      discount_spec: Spec of shape `()`; None for a float32 in [0, 1].
    """
    self.batch_size = batch_size
    self.observation_spec = observation_spec
    self.action_spec = action_spec
    self.reward_spec = reward_spec or specs.Array((), np.float32, 'reward')
    self.discount_spec = discount_spec or specs.BoundedArray(
      (), np.float32, 0, 1, 'discount'
    )

  @abc.abstractmethod
  def reset(self) -> Nest:
    """Starts all episodes and returns the observations.

    Raises:
      SlotError: If an environment violates its specs.
    """

  @abc.abstractmethod
  def step(self, actions: Nest, ended: np.ndarray | None) -> StepResult:
    """Steps each slot, or restarts it.

    Args:
      actions: Nest of arrays `[B, ...]` of exactly the action spec's dtypes;
        bounded integers are in range, and floats are finite.
      ended: `[B]`, bool: the slots to restart, whose actions are ignored; None
        if no slot has ended.

    Raises:
      SlotError: If an environment violates its specs.
    """

  def info(self, slot: int) -> Mapping[str, Any] | None:
    """Returns the info of a slot: see `VectorBatch.info`."""
    del slot
    return None

  def close(self) -> None:  # noqa: B027
    """Releases all resources; by default there are none."""


class VectorBatch:
  """Batch of B environments of one kind, of single precision.

  Wide values are cast as by `wrappers.SinglePrecision`.

  A timestep of the batch is one `dm_env.TimeStep` whose `step_type` is an int32
  array `[B]` of `dm_env.StepType` values, whose `reward` and `discount` are
  arrays `[B]` and whose observation is a nest of arrays `[B, ...]`. Slots end
  their episodes independently: the step after a slot's LAST restarts this slot
  alone, ignores its action and returns FIRST, reward 0 and discount 1.

  Every array is new in each step, so callers may keep them.
  """

  def __init__(self, source: VectorSource):
    """Takes ownership of the source; only the batch may step it.

    Raises:
      ValueError: If a spec cannot be of single precision.
    """
    self._source = source
    self._size = size = source.batch_size
    narrow = single_precision.narrow
    self._observation_spec = narrow(source.observation_spec, 'observation')
    self._action_spec = narrow(source.action_spec, 'action', inwards=True)
    self._reward_spec = narrow(source.reward_spec, 'reward')
    self._discount_spec = narrow(source.discount_spec, 'discount')
    self._narrow = layout.make_narrow(self._observation_spec, size)
    self._widen = layout.make_widen(self._action_spec, source.action_spec, size)
    self._masks = None
    observations = self._observation_spec
    if isinstance(observations, Mapping) and mask_layouts.NAME in observations:
      # Most environments have no masks.
      from repertory.environments.batches import mask_check  # noqa: PLC0415

      self._masks = mask_check.MaskCheck(observations, self._action_spec)
    self._mid = np.full(size, _MID, np.int32)
    self._ones = np.ones(size, self._discount_spec.dtype)
    # None if no slot has ended.
    self._ended: np.ndarray | None = None
    self._clock = 0
    # Step count of the batch when each slot's episode began.
    self._starts = np.zeros(size, np.int64)
    self._started = False
    self._closed = False

  @property
  def batch_size(self) -> int:
    """The number of slots, B."""
    return self._size

  def observation_spec(self) -> Nest:
    """Returns the nest of specs of one environment, without `[B]`."""
    return self._observation_spec

  def action_spec(self) -> Nest:
    """Returns the nest of specs of one environment, without `[B]`."""
    return self._action_spec

  def reward_spec(self) -> specs.Array:
    """Returns the spec of one environment's reward, of shape `()`."""
    return self._reward_spec

  def discount_spec(self) -> specs.Array:
    """Returns the spec of one environment's discount, of shape `()`."""
    return self._discount_spec

  def reset(self) -> dm_env.TimeStep:
    """Starts a new episode in every slot, even if the last one has not ended.

    Raises:
      EnvironmentContractError: If an environment violates its specs, as in
        `step`.
    """
    self._started = False
    self._starts[:] = self._clock
    try:
      observation = self._source.reset()
    except SlotError as error:
      raise self._explain(error) from error
    observation = self._cast(observation)
    self._observe_masks(observation, None)
    self._ended = None
    self._started = True
    return dm_env.TimeStep(
      np.full(self._size, _FIRST, np.int32),
      np.zeros(self._size, self._reward_spec.dtype),
      np.ones(self._size, self._discount_spec.dtype),
      observation,
    )

  def step(self, actions: Nest) -> dm_env.TimeStep:
    """Steps every slot, or restarts it if its episode has ended.

    Before the first `reset`, and after an error that left the slots out of
    step, a step resets all slots and ignores the actions, as the first step of
    a dm_env environment does.

    Args:
      actions: Nest of arrays `[B, ...]` of the action spec. Those of ended
        slots are ignored.

    Raises:
      ValueError: If `actions` do not fit the action spec with a leading `[B]`,
        or one is masked, see `mask_check`.
      FloatingPointError: If an action is not finite; names the slot and the
        step. The environments have not been stepped.
      EnvironmentContractError: If an environment violates its specs; names the
        slot and the step of its episode, where FIRST is step 0.
    """
    if not self._started:
      return self.reset()
    ended = self._ended
    try:
      actions = self._widen(actions, ended)
    except layout.NotFiniteError as error:
      raise FloatingPointError(
        f'{self._locate(error.slot, self._clock + 1)}: {error}. Look for'
        ' observations, or variables of the policy, that are not finite or very'
        ' large.'
      ) from error
    except ValueError as error:
      raise ValueError(
        f'{error}. Give one action of `action_spec()` per slot, with a leading'
        f' axis of {self._size}.'
      ) from error
    self._check_allowed(actions, ended)
    self._started = False  # Until every slot has been stepped.
    self._clock += 1
    if ended is not None:
      np.putmask(self._starts, ended, self._clock)
    try:
      observation, rewards, discounts, last = self._source.step(actions, ended)
    except SlotError as error:
      raise self._explain(error) from error
    observation = self._cast(observation)
    self._observe_masks(observation, last)
    rewards = rewards.astype(self._reward_spec.dtype, copy=False)  # [B]
    if discounts is None:
      discounts = self._ones.copy()
    discounts = discounts.astype(self._discount_spec.dtype, copy=False)  # [B]
    step_types = self._mid.copy()
    if ended is not None:
      step_types -= ended  # FIRST is MID - 1.
    if last is not None:
      step_types += last  # LAST is MID + 1.
    self._ended = last
    self._started = True
    return dm_env.TimeStep(step_types, rewards, discounts, observation)

  def info(self, slot: int) -> Mapping[str, Any] | None:
    """Returns Gymnasium's `info` of the last step of a slot.

    Returns:
      Values of any type by name; None if the environments have no info.
    """
    return self._source.info(slot)

  def render(self, slots: Sequence[int]) -> rendering.Frames:
    """Renders some slots: see `rendering`.

    Raises:
      RenderError: If the source does not support rendering.
    """
    return rendering.render(self._source, slots)

  @property
  def render_fps(self) -> float:
    """Frames per second of a slot's video."""
    return rendering.rate(self._source)

  def close(self) -> None:
    """Closes the source; idempotent."""
    if not self._closed:
      self._closed = True
      self._source.close()

  def _cast(self, observation: Nest) -> Nest:
    try:
      return self._narrow(observation)
    except ValueError as error:
      raise EnvironmentContractError(
        f'{error}. Correct the observation, or its spec.'
      ) from error

  def _observe_masks(self, observation: Nest, last: np.ndarray | None) -> None:
    if self._masks is None:
      return
    slot = self._masks.observe(observation, last)
    if slot is not None:
      raise EnvironmentContractError(
        f'{self._locate(slot, self._clock)}: the action mask must allow at '
        'least one choice of each integer, got none. End the episode instead.'
      )

  def _check_allowed(self, actions: Nest, ended: np.ndarray | None) -> None:
    if self._masks is None:
      return
    found = self._masks.find_masked(actions, ended)
    if found is not None:
      slot, action = found
      raise ValueError(
        f'{self._locate(slot, self._clock)}: expected an action that its mask '
        f'allows, got {action}. Custom policies may choose only outputs that '
        'components.actions.action_masks.is_allowed.'
      )

  def _locate(self, slot: int, clock: int) -> str:
    step = clock - int(self._starts[slot])
    return f'Slot {slot}, step {step} of its episode'

  def _explain(self, error: SlotError) -> EnvironmentContractError:
    """Adds the slot and the step to the message."""
    where = self._locate(error.slot, self._clock)
    message = str(error).removesuffix('.')
    return EnvironmentContractError(
      f'{where}: {message}. {error.advice}'.rstrip()
    )


class SingleSlot(environment_wrapper.EnvironmentWrapper):
  """Source of batch size 1, which it owns, as a plain environment."""

  def __init__(self, source: VectorSource):
    batch: Any = VectorBatch(source)
    super().__init__(batch)
    self._batch = batch
    observations = layout.NestLayout(batch.observation_spec(), 'observation')
    actions = layout.NestLayout(batch.action_spec(), 'action')
    take = operator.itemgetter(0)
    self._unstack = observations.mapper([take] * len(observations.specs))
    self._stack = actions.mapper([_add_row] * len(actions.specs))

  def step(self, action: Nest) -> dm_env.TimeStep:
    return super().step(self._stack(action))

  @property
  def info(self) -> Mapping[str, Any] | None:
    """Info of the last step: see `VectorBatch.info`."""
    return self._batch.info(0)

  def render(self) -> np.ndarray:
    """Renders the environment: see `rendering`."""
    return self._batch.render([0])[0]

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    observation = self._unstack(timestep.observation)
    step_type = dm_env.StepType(timestep.step_type[0])
    if step_type is dm_env.StepType.FIRST:
      return dm_env.restart(observation)
    return dm_env.TimeStep(
      step_type, timestep.reward[0], timestep.discount[0], observation
    )


def _add_row(array: Any) -> np.ndarray:
  return np.asarray(array)[np.newaxis]


class BatchWrapper:
  """Forwards all calls to an environment batch; subclasses override some.

  Attributes:
    batch: The wrapped batch: a `VectorBatch`, or another wrapper.
  """

  def __init__(self, batch: Any):
    """Takes ownership of the batch; `close` closes it."""
    self.batch = batch

  def reset(self) -> dm_env.TimeStep:
    return self._convert(self.batch.reset())

  def step(self, actions: Nest) -> dm_env.TimeStep:
    return self._convert(self.batch.step(actions))

  def _convert(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    """Returns the timestep that `reset` and `step` return."""
    return timestep

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_') or name == 'batch':  # While it is unpickled.
      raise AttributeError(name)
    return getattr(self.batch, name)
