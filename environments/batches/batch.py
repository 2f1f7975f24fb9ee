"""Batch of environments that are stepped one after the other."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.batches import layout, vector_batch
from repertory.environments.batches.layout import Nest
from repertory.environments.rendering import rendering
from repertory.environments.values import timestep_checker
from repertory.environments.wrappers import single_precision

EnvironmentContractError = vector_batch.EnvironmentContractError

_FIRST, _MID, _LAST = dm_env.StepType


class EnvironmentBatch(vector_batch.VectorBatch):
  """Environment batch that steps its environments in a loop: see `VectorBatch`.

  Structure, shape and dtype of each value are compared with the specs before it
  is copied, because a wrong shape that broadcasts is hard to find later on. The
  values of rewards, discounts and bounded integers of observations are checked,
  too.
  """

  def __init__(self, environments: Sequence[dm_env.Environment]):
    """Takes ownership of the environments; only the batch may step them.

    Args:
      environments: B distinct environments with equal specs and scalar rewards
        and discounts. If all of them are `SinglePrecision` wrappers, the batch
        does their casts itself, which is faster.

    Raises:
      ValueError: If the list is empty, an environment comes twice, or the specs
        differ.
    """
    timestep_checker.check_environments(environments)
    wrapper = single_precision.SinglePrecision
    wrapped = [e.environment for e in environments if isinstance(e, wrapper)]
    narrows = len(wrapped) == len(environments)
    source = _Loop(wrapped if narrows else environments, narrows)
    super().__init__(source, narrows=narrows)


class _Loop:
  """A list of environments as a `vector_batch.VectorSource`."""

  def __init__(self, environments: Sequence[dm_env.Environment], narrows: bool):
    self._environments = list(environments)
    first = self._environments[0]
    self._observation_spec = first.observation_spec()
    self._action_spec = first.action_spec()
    self._reward_spec = first.reward_spec()
    self._discount_spec = first.discount_spec()
    if narrows:
      # Cast here already, so that messages show an invalid reward unchanged.
      self._reward_spec = single_precision.narrow(self._reward_spec, 'reward')
    size = len(self._environments)
    self._observations = layout.NestLayout(
      self._observation_spec, 'observation'
    )
    self._actions = layout.NestLayout(self._action_spec, '`actions`')
    self._is_action = isinstance(self._action_spec, specs.Array)
    self._checker = timestep_checker.TimestepChecker(
      self._observations, self._reward_spec, self._discount_spec
    )
    self._buffers = [
      ((size, *spec.shape), spec.dtype) for spec in self._observations.specs
    ]

  @property
  def batch_size(self) -> int:
    """The number of slots, B."""
    return len(self._environments)

  def observation_spec(self) -> Nest:
    """Returns the nest of specs of one environment."""
    return self._observation_spec

  def action_spec(self) -> Nest:
    """Returns the nest of specs of one environment."""
    return self._action_spec

  def reward_spec(self) -> specs.Array:
    """Returns the spec of one environment's reward."""
    return self._reward_spec

  def discount_spec(self) -> specs.Array:
    """Returns the spec of one environment's discount."""
    return self._discount_spec

  def reset(self) -> Nest:
    """Starts a new episode in every slot, whether the last one ended or not."""
    size = len(self._environments)
    return self._advance([None] * size, [True] * size).observation

  def step(
    self, actions: Nest, ended: np.ndarray | None
  ) -> vector_batch.StepResult:
    """Steps or resets each slot and stacks the results."""
    restarts = [False] * self.batch_size if ended is None else ended.tolist()
    return self._advance(self._split(actions), restarts)

  def _advance(
    self, actions: Sequence[Nest], restarts: Sequence[bool]
  ) -> vector_batch.StepResult:
    checker, size = self._checker, len(self._environments)
    arrays = [np.empty(*buffer) for buffer in self._buffers]  # [B, ...]
    rewards = [0.0] * size
    discounts = [1.0] * size
    last = [False] * size
    shape, dtype = checker.plain
    limit = checker.reward_limit
    slots = zip(range(size), self._environments, actions, restarts)
    for slot, environment, action, again in slots:
      timestep = environment.reset() if again else environment.step(action)
      step_type, reward, discount, observation = timestep
      try:
        if again:
          _check(step_type, _FIRST)
        else:
          if step_type is not _MID:
            _check(step_type, _LAST)
            last[slot] = True
          # Fast path for plain Python floats, without a function call.
          if type(reward) is float and -limit <= reward <= limit:
            rewards[slot] = reward
          else:
            rewards[slot] = checker.check_reward(reward)
          if type(discount) is not float or discount != 1.0:
            discounts[slot] = checker.check_discount(discount)
        if (
          type(observation) is np.ndarray
          and observation.shape == shape
          and observation.dtype == dtype
        ):
          arrays[0][slot] = observation
        else:
          checker.store(observation, arrays, slot)
      except ValueError as error:
        raise vector_batch.SlotError(slot, str(error)) from error
    return vector_batch.gather(
      self._observations.unflatten(arrays),
      rewards,
      discounts,
      last,
      self._reward_spec.dtype,
      self._discount_spec.dtype,
    )

  def info(self, slot: int) -> Mapping[str, Any] | None:
    """Returns the attribute `info` of an environment; None if it has none."""
    info = getattr(self._environments[slot], 'info', None)
    return info if isinstance(info, Mapping) else None

  def render(self, slots: Sequence[int]) -> rendering.Pictures:
    """Renders some slots."""
    return [rendering.render(self._environments[slot]) for slot in slots]

  @property
  def render_fps(self) -> float:
    """Frames per second of an environment's video."""
    return rendering.rate(self._environments[0])

  def close(self) -> None:
    """Closes every environment even if one of them fails.

    Raises:
      Exception: The first error of an environment, after all were closed.
    """
    with contextlib.ExitStack() as stack:
      for environment in self._environments:
        stack.callback(environment.close)

  def _split(self, actions: Nest) -> list[Nest]:
    """Returns one action per slot."""
    if self._is_action:
      return list(actions)
    columns = self._actions.flatten(actions)
    return [self._actions.unflatten(row) for row in zip(*columns)]


def _check(step_type: Any, expected: dm_env.StepType) -> None:
  """Raises a ValueError unless the step has the expected type."""
  if step_type is expected:
    return
  due = 'StepType.MID or StepType.LAST of `step`'
  if expected is _FIRST:
    due = 'StepType.FIRST of `reset`'
  raise ValueError(f'step_type: expected {due}, found {step_type!r}')
