"""Environment module that other hosts lack."""

import time

import dm_env
import numpy as np
from dm_env import specs

_NUM_STEPS = 10
_STEP_SECONDS = 0.002


class Signals(dm_env.Environment):
  """Rewards each action that equals one of two signals with 1."""

  def __init__(self, seed):
    self._random = np.random.default_rng(seed)

  def reset(self):
    self._steps = 0
    return dm_env.restart(self._observe())

  def step(self, action):
    time.sleep(_STEP_SECONDS)
    reward = np.float32(action == self._signal)
    self._steps += 1
    if self._steps == _NUM_STEPS:
      return dm_env.termination(reward, self._observe())
    return dm_env.transition(reward, self._observe(), np.float32(1))

  def _observe(self):
    self._signal = int(self._random.integers(2))
    return np.eye(2, dtype=np.float32)[self._signal]

  def observation_spec(self):
    return specs.Array((2,), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(2)
