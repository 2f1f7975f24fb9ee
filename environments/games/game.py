"""Base class of the small games in NumPy."""

import abc
import operator
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.values import argument_checks


class HostGame(dm_env.Environment):
  """Game with its own random generator, in single precision throughout.

  Subclasses add the rules: `_start`, `_advance` and `_observe`.
  """

  def __init__(self, seed: int):
    seed = argument_checks.check_integer('seed', seed, 0)
    self._random = np.random.default_rng(seed)
    self._ended = True

  def reset(self) -> dm_env.TimeStep:
    self._start()
    self._ended = False
    return dm_env.restart(self._observe())

  def step(self, action: Any) -> dm_env.TimeStep:
    """Takes one step, or starts an episode after the last one.

    Raises:
      ValueError: If the action does not fit its spec.
    """
    if self._ended:
      return self.reset()
    reward, terminated, truncated = self._advance(action)
    self._ended = terminated or truncated
    return dm_env.TimeStep(
      dm_env.StepType.LAST if self._ended else dm_env.StepType.MID,
      np.float32(reward),
      np.float32(not terminated),
      self._observe(),
    )

  def reward_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray((), np.float32, -1, 1, name='reward')

  def discount_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray((), np.float32, 0, 1, name='discount')

  @abc.abstractmethod
  def _start(self) -> None:
    """Starts an episode."""

  @abc.abstractmethod
  def _advance(self, action: Any) -> tuple[float, bool, bool]:
    """Returns the reward, and whether the step terminates or truncates."""

  @abc.abstractmethod
  def _observe(self) -> np.ndarray:
    """Returns the observation."""


def check_choice(action: Any, count: int, meanings: str) -> int:
  """Returns an action from 0 to `count` - 1 as a Python integer."""
  try:
    choice = operator.index(action)
  except TypeError:
    choice = -1
  if not 0 <= choice < count:
    raise ValueError(f'`action`: expected {meanings}, got {action!r}.')
  return choice
