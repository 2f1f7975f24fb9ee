"""Drives a list of environments as one batch."""

from collections.abc import Sequence
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments import casting, layout, timestep_checker

Nest = Any

_FIRST = dm_env.StepType.FIRST
_MID = dm_env.StepType.MID
_LAST = dm_env.StepType.LAST


class EnvironmentContractError(ValueError):
  """An environment broke its specs or dm_env's rules."""


class EnvironmentBatch:
  """Steps B environments of one kind side by side.

  A timestep of the batch is one `dm_env.TimeStep` whose `step_type` is an int32
  array `[B]` of `dm_env.StepType` values, whose `reward` and `discount` are
  arrays `[B]` and whose observation is a nest of arrays `[B, ...]`. The slots
  end their episodes independently: the step after a slot's LAST resets this
  slot alone, ignores its action and gives FIRST, reward 0 and discount 1.

  Every array is new in each step, so callers may keep them. Everything that an
  environment says is compared with its specs before it is copied, because a
  wrong shape that broadcasts, or a NaN, is hard to find later on.
  """

  def __init__(self, environments: Sequence[dm_env.Environment]):
    """Takes over the environments: from now on only the batch steps them.

    Args:
      environments: B distinct environments with equal specs, whose rewards and
        discounts are scalars.

    Raises:
      ValueError: If there are none, if one comes twice or if the specs differ.
    """
    self._environments = list(environments)
    timestep_checker.check_environments(self._environments)
    first = self._environments[0]
    self._observation_spec = first.observation_spec()
    self._action_spec = first.action_spec()
    self._reward_spec = first.reward_spec()
    self._discount_spec = first.discount_spec()

    size = len(self._environments)
    self._observations = layout.Layout(self._observation_spec, 'observation')
    self._actions = layout.Layout(self._action_spec, '`actions`')
    self._checker = timestep_checker.TimestepChecker(
      self._observations, self._reward_spec, self._discount_spec
    )
    self._buffers = [
      ((size, *spec.shape), spec.dtype) for spec in self._observations.specs
    ]
    # What most slots return; a step fills in the others on a copy.
    self._all_mid = np.full(size, _MID, np.int32)
    self._zeros = np.zeros(size, self._reward_spec.dtype)
    self._ones = np.ones(size, self._discount_spec.dtype)
    self._ended = [True] * size
    self._episode_steps = [0] * size
    self._started = False
    self._closed = False

  @property
  def batch_size(self) -> int:
    """The number of slots, B."""
    return len(self._environments)

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
    """Starts a new episode in every slot, whether the last one ended or not.

    Raises:
      EnvironmentContractError: If an environment breaks its specs, as in
        `step`.
    """
    self._ended = [True] * self.batch_size
    return self._advance([None] * self.batch_size)

  def step(self, actions: Nest) -> dm_env.TimeStep:
    """Steps every slot, or resets it if its episode has ended.

    Before the first `reset`, and after an error has left the slots at
    different times, a step resets all slots and ignores the actions, as a step
    of a fresh dm_env environment does.

    Args:
      actions: Nest of arrays `[B, ...]` of the action spec. Ended slots ignore
        theirs.

    Raises:
      ValueError: If `actions` do not have the action spec's structure, shape
        and kind of dtype with a leading `[B]`.
      EnvironmentContractError: If an environment breaks its specs; names the
        slot and the step of its episode, where FIRST is step 0.
    """
    if not self._started:
      return self.reset()
    return self._advance(self._split(actions))

  def close(self) -> None:
    """Closes every environment even if one of them fails; idempotent.

    Raises:
      Exception: The first error of an environment, after all were closed.
    """
    if self._closed:
      return
    self._closed = True
    errors = []
    for environment in self._environments:
      try:
        environment.close()
      except Exception as error:  # Raised below, when the others are closed.
        errors.append(error)
    if errors:
      raise errors[0]

  def _split(self, actions: Nest) -> list[Nest]:
    """Returns one action per slot, of exactly the action spec's dtypes."""
    size = len(self._environments)
    try:
      leaves = self._actions.flatten(actions)
      columns = [self._split_leaf(i, leaf) for i, leaf in enumerate(leaves)]
    except ValueError as error:
      raise ValueError(
        f'{error}. Give one action of `action_spec()` per slot, with a leading'
        f' axis of {size}.'
      ) from error
    return [
      self._actions.unflatten([column[slot] for column in columns])
      for slot in range(size)
    ]

  def _split_leaf(self, index: int, leaf: Any) -> list[Any]:
    spec = self._actions.specs[index]
    shape = (len(self._environments), *spec.shape)
    # A copy, as an environment may work on its action in place.
    array = np.array(leaf)
    if array.dtype != spec.dtype or array.shape != shape:
      try:
        array = casting.cast(array, shape, spec.dtype)
      except ValueError as error:
        raise ValueError(f'{self._actions.paths[index]}: {error}') from error
    return list(array)

  def _advance(self, actions: list[Nest]) -> dm_env.TimeStep:
    """Steps or resets each slot and collects what it says."""
    self._started = False  # Until every slot has come through.
    step_types = self._all_mid.copy()  # [B]
    rewards = self._zeros.copy()  # [B]
    discounts = self._ones.copy()  # [B]
    arrays = [np.empty(*buffer) for buffer in self._buffers]  # [B, ...]
    checker, ended = self._checker, self._ended
    for slot, environment in enumerate(self._environments):
      resets = ended[slot]
      if resets:
        timestep = environment.reset()
        self._episode_steps[slot] = 0
      else:
        timestep = environment.step(actions[slot])
        self._episode_steps[slot] += 1
      step_type = timestep.step_type
      try:
        if step_type is not _MID or resets:
          _check_step_type(step_type, resets)
          step_types[slot] = step_type
          ended[slot] = step_type is _LAST
        if not resets:
          rewards[slot] = checker.check_reward(timestep.reward)
          discounts[slot] = checker.check_discount(timestep.discount)
        checker.store(timestep.observation, arrays, slot)
      except ValueError as error:
        raise EnvironmentContractError(
          f'Slot {slot}, step {self._episode_steps[slot]} of its episode:'
          f' {error}. Make the environment keep to its specs, or wrap it.'
        ) from error
    self._started = True
    observation = self._observations.unflatten(arrays)
    return dm_env.TimeStep(step_types, rewards, discounts, observation)


def _check_step_type(step_type: Any, resets: bool) -> None:
  """Raises a ValueError unless FIRST comes from a reset and only from it."""
  if resets and step_type is not _FIRST:
    raise ValueError(
      f'step_type: expected StepType.FIRST of `reset`, found {step_type!r}'
    )
  if not resets and step_type is not _LAST:
    raise ValueError(
      'step_type: expected StepType.MID or StepType.LAST of `step`, found'
      f' {step_type!r}'
    )
