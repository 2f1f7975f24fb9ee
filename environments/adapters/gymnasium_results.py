"""Results of `reset` and `step` of Gymnasium environments."""

import inspect
import pathlib
import re
import traceback
from collections.abc import Mapping
from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments.batches import vector_batch
from repertory.environments.batches.layout import Nest
from repertory.environments.values import casting

_TRUTHS = (bool, np.bool_)


def check_interface(env: Any, error: Exception) -> None:
  """Raises a helpful error for an environment with the interface of old Gym.

  Args:
    env: The environment.
    error: A TypeError or ValueError that its `reset` or `step` raised.

  Raises:
    EnvironmentContractError: If `reset` lacks a keyword, or `step` does not
      return five values; says what to change.
  """
  message = _explain(env, error)
  if message is not None:
    name = type(getattr(env, 'unwrapped', env)).__name__
    raise vector_batch.EnvironmentContractError(f'{name}: {message}') from error


def _explain(env: Any, error: Exception) -> str | None:
  if isinstance(error, TypeError):
    missing = [
      word
      for word in ('seed', 'options')
      if f"unexpected keyword argument '{word}'" in str(error)
    ]
    if not missing or _takes(env, missing[0]):
      return None
    return (
      f'`reset` must take the keyword `{missing[0]}`, as in Gymnasium, got '
      f'{str(error)!r}. Write `def reset(self, *, seed=None, options=None)`, '
      'call `super().reset(seed=seed)`, and return the observation and a '
      'dictionary.'
    )
  found = re.search(
    r'values to unpack \(expected 5(?:, got (\d+))?\)', str(error)
  )
  if found is None or 'gymnasium' not in _file_of(error):
    return None
  return (
    '`step` must return five values, observation, reward, terminated, '
    f"truncated and info, got {found[1] or 'more'}. Old Gym's `done` is "
    '`terminated` if the task is over, and `truncated` if a time limit cuts it '
    'off.'
  )


def _file_of(error: Exception) -> str:
  """Returns the path of the module that raised, starting at its package."""
  frame = traceback.extract_tb(error.__traceback__)[-1]
  return '/'.join(pathlib.Path(frame.filename).parts[-4:])


def _takes(env: Any, keyword: str) -> bool:
  """Returns whether `reset` of the innermost environment takes a keyword."""
  parameters = inspect.signature(
    getattr(env, 'unwrapped', env).reset
  ).parameters
  kinds = {parameter.kind for parameter in parameters.values()}
  return keyword in parameters or inspect.Parameter.VAR_KEYWORD in kinds


def reset(env: Any, **seed: Any) -> Any:
  """Calls `reset` of an environment.

  Raises:
    EnvironmentContractError: If it lacks a keyword, as in old Gym.
  """
  try:
    return env.reset(**seed)
  except (TypeError, ValueError) as error:
    check_interface(env, error)
    raise


def observation_of(result: Any) -> Any:
  """Returns the observation of a result of `reset`.

  Raises:
    EnvironmentContractError: If the result is not observation and info.
  """
  if (
    isinstance(result, tuple)
    and len(result) == 2
    and isinstance(result[1], Mapping)
  ):
    return result[0]
  raise vector_batch.EnvironmentContractError(
    '`reset` must return an observation and a dictionary, its info, got '
    f'{casting.shorten(result)}. Return `observation, {{}}`.'
  )


def to_flag(name: str, value: Any) -> bool:
  """Returns `terminated` or `truncated` as a Python bool.

  Args:
    name: 'terminated' or 'truncated'.
    value: A bool, or 0 or 1.

  Raises:
    EnvironmentContractError: If the value is something else, such as None or a
      string.
  """
  if isinstance(value, _TRUTHS):
    return bool(value)
  array = np.asarray(value)
  if array.dtype.kind in 'biuf' and array.size == 1 and array.item() in (0, 1):
    return bool(array.item())
  raise vector_batch.EnvironmentContractError(
    f'{name}: expected True or False, found {casting.shorten(value)}. Return '
    "the five values of Gymnasium's `step` in their order."
  )


def info_of(infos: Mapping[str, Any], slot: int) -> dict[str, Any]:
  """Returns the info of one slot of a vector environment.

  Args:
    infos: Arrays `[B]` by name; a mask `_<name>` marks the slots that have it.
    slot: Index of the environment.
  """
  found = {}
  for name, values in infos.items():
    if name.startswith('_') or not isinstance(values, np.ndarray):
      continue
    if f'_{name}' not in infos or infos[f'_{name}'][slot]:
      found[name] = values[slot]
  return found


class GymnasiumOutcomes:
  """Base class of sources with Gymnasium's `step` results."""

  def reward_spec(self) -> specs.Array:
    """Returns the spec of the reward, a float32."""
    return specs.Array((), np.float32, name='reward')

  def discount_spec(self) -> specs.BoundedArray:
    """Returns the spec of the discount, a float32: 0 if terminated, else 1."""
    return specs.BoundedArray((), np.float32, 0, 1, name='discount')

  def to_outcome(
    self,
    observation: Nest,
    rewards: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    ended: np.ndarray | None,
  ) -> vector_batch.StepResult:
    """Converts the results of a step of a vector environment.

    Raises:
      vector_batch.SlotError: If a reward is not finite.
      EnvironmentContractError: If `terminated` or `truncated` are not bools.
    """
    for name, flags in ('terminated', terminated), ('truncated', truncated):
      if getattr(flags, 'dtype', None) != np.bool_:
        raise vector_batch.EnvironmentContractError(
          f'{name}: expected an array of bools, found {casting.shorten(flags)}.'
        )
    if ended is not None:
      continues = ~ended
      rewards = np.where(continues, rewards, 0)
      terminated, truncated = terminated & continues, truncated & continues
    # The fastest sum; NaN propagates through it.
    if not rewards.dot(rewards) <= casting.MAX_SINGLE**2:
      for slot in np.flatnonzero(~(np.abs(rewards) <= casting.MAX_SINGLE)):
        raise vector_batch.SlotError(
          int(slot),
          f'reward: expected a finite number of float32, found {rewards[slot]}',
        )
    # A copy, because the environment may change its array.
    rewards = rewards.astype(np.float32)
    discounts = last = None
    if _any(terminated):
      discounts, last = ~terminated, terminated | truncated
    elif _any(truncated):
      last = truncated.copy()
    return vector_batch.StepResult(observation, rewards, discounts, last)


def _any(flags: np.ndarray) -> bool:
  return b'\1' in flags.tobytes()  # Faster than `any`.
