"""An environment in which the best action equals the observation."""

import dm_env
import numpy as np
from dm_env import specs

_NUM_STEPS = 10


class Follow(dm_env.Environment):
  """Environment with the reward −|action − observation|² in each of ten steps.

  The observation is uniform in [−1.5, 1.5]², so the constant action 0 has the
  expected return −15.
  """

  def __init__(self, seed):
    self._random = np.random.default_rng(seed)

  def reset(self):
    self._steps = 0
    return dm_env.restart(self._observe())

  def step(self, action):
    reward = np.float32(-np.sum((action - self._target) ** 2))
    self._steps += 1
    if self._steps == _NUM_STEPS:
      return dm_env.termination(reward, self._observe())
    return dm_env.transition(reward, self._observe(), np.float32(1))

  def _observe(self):
    self._target = self._random.uniform(-1.5, 1.5, 2).astype(np.float32)
    return self._target

  def observation_spec(self):
    return specs.Array((2,), np.float32)

  def action_spec(self):
    return specs.BoundedArray((2,), np.float32, -2, 2)

  def reward_spec(self):
    return specs.Array((), np.float32)

  def discount_spec(self):
    return specs.BoundedArray((), np.float32, 0, 1)
