"""Memory chain: a minimal task that needs memory, in pure NumPy.

After bsuite's `memory_len` (https://github.com/google-deepmind/bsuite; Osband
et al. 2020, https://arxiv.org/abs/1908.03568), with one bit and without its
countdown.
"""

from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments.games import game
from repertory.environments.values import argument_checks


class MemoryChain(game.HostGame):
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
    super().__init__(seed)
    self._cue = 0
    self._num_steps = 0

  def observation_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray((3,), np.float32, 0, 1, name='cue_and_flag')

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(2, np.int32, name='answer')

  def _start(self) -> None:
    self._cue = int(self._random.integers(2))
    self._num_steps = 0

  def _advance(self, action: Any) -> tuple[float, bool, bool]:
    answer = game.check_choice(action, 2, '0 or 1')
    self._num_steps += 1
    if self._num_steps <= self._length:
      return 0, False, False
    return 1 if answer == self._cue else -1, True, False

  def _observe(self) -> np.ndarray:
    observation = np.zeros(3, np.float32)
    if self._num_steps == 0:
      observation[self._cue] = 1
    elif self._num_steps == self._length:
      observation[2] = 1
    return observation
