"""Memory chain: a minimal task that needs memory, in pure NumPy.

After bsuite's `memory_len` (https://github.com/google-deepmind/bsuite; Osband
et al. 2020, https://arxiv.org/abs/1908.03568), with one bit and without its
countdown.
"""

import operator
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments.values import argument_checks


class MemoryChain(dm_env.Environment):
  """Shows one of two cues and queries it `length` steps later.

  The action at the query is rewarded with +1 if it equals the cue and with -1
  otherwise, and ends the episode. All other actions have no effect and no
  reward. An episode has `length + 1` steps.

  Without memory no policy has a mean return above 0, because the query looks
  the same after both cues. A stack of `length + 1` frames counts as memory, and
  so does the previous action in the observation: a policy may repeat the cue
  from the first timestep until the query.

  Observation: float32 `[3]`. At the first timestep 1 in the cue's entry, 0 or
  1; at the query 1 in entry 2; zeros otherwise, at the last timestep too.
  Actions: 0 or 1, the cue.
  """

  def __init__(self, length: int = 10, seed: int = 0):
    """Creates the chain.

    Args:
      length: Steps from the cue to the query, at least 1.
      seed: Seed of the cues, at least 0.

    Raises:
      ValueError: If an argument is not an integer, or is too small.
    """
    self._length = argument_checks.check_integer('length', length, 1)
    seed = argument_checks.check_integer('seed', seed, 0)
    self._random = np.random.default_rng(seed)
    self._cue = 0
    self._num_steps = 0
    self._ended = True

  def reset(self) -> dm_env.TimeStep:
    """Draws a new cue and shows it."""
    self._cue = int(self._random.integers(2))
    self._num_steps = 0
    self._ended = False
    return dm_env.restart(self._observe())

  def step(self, action: Any) -> dm_env.TimeStep:
    """Advances by one step; at the query, compares the action with the cue.

    Args:
      action: Integer scalar, 0 or 1.

    Raises:
      ValueError: If the action is another one, also before the query.
    """
    if self._ended:
      return self.reset()
    answer = _check_action(action)
    self._ended = self._num_steps == self._length
    self._num_steps += 1
    if not self._ended:
      return dm_env.TimeStep(
        dm_env.StepType.MID, np.float32(0), np.float32(1), self._observe()
      )
    return dm_env.TimeStep(
      dm_env.StepType.LAST,
      np.float32(1 if answer == self._cue else -1),
      np.float32(0),
      self._observe(),
    )

  def observation_spec(self) -> specs.BoundedArray:
    """Returns the spec of the one-hot cue and the query flag, `[3]`."""
    return specs.BoundedArray((3,), np.float32, 0, 1, name='cue_and_flag')

  def action_spec(self) -> specs.DiscreteArray:
    """Returns the spec of the two answers."""
    return specs.DiscreteArray(2, np.int32, name='answer')

  def reward_spec(self) -> specs.BoundedArray:
    """Returns the spec of the reward, -1, 0 or 1."""
    return specs.BoundedArray((), np.float32, -1, 1, name='reward')

  def discount_spec(self) -> specs.BoundedArray:
    """Returns the spec of the discount, 0 at the end and 1 before it."""
    return specs.BoundedArray((), np.float32, 0, 1, name='discount')

  def _observe(self) -> np.ndarray:
    observation = np.zeros(3, np.float32)
    if self._num_steps == 0:
      observation[self._cue] = 1
    elif self._num_steps == self._length:
      observation[2] = 1
    return observation


def _check_action(action: Any) -> int:
  try:
    answer = operator.index(action)
  except TypeError:
    answer = -1
  if answer not in (0, 1):
    raise ValueError(f'`action`: expected 0 or 1, got {action!r}.')
  return answer
