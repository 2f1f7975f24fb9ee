"""Scripted environment for tests."""

import dm_env
import numpy as np
from dm_env import specs


class ScriptedEnvironment(dm_env.Environment):
  """Environment with nested observations and actions, and a fixed length.

  The observation encodes the episode and the step; the reward of step t is t.
  Tests fill `overrides` with values that replace the fields of the timestep of
  step `override_step`.
  """

  def __init__(self, length=3, override_step=None, **overrides):
    self.actions = []
    self.num_resets = 0
    self.num_closes = 0
    self._length = length
    self._override_step = override_step
    self._overrides = overrides
    self._step = 0
    self._ended = True

  def reset(self):
    self.num_resets += 1
    self._step = 0
    self._ended = False
    return self._override(dm_env.restart(self.make_observation()))

  def step(self, action):
    if self._ended:
      return self.reset()
    self.actions.append(action)
    self._step += 1
    self._ended = self._step == self._length
    timestep = dm_env.TimeStep(
      dm_env.StepType.LAST if self._ended else dm_env.StepType.MID,
      np.float32(self._step),
      np.float32(0.0 if self._ended else 0.5),
      self.make_observation(),
    )
    return self._override(timestep)

  def make_observation(self):
    """Returns the current observation, for tests that change a part of it."""
    step = self._step
    return {
      'board': np.full((2, 3), 10 * self.num_resets + step, np.float32),
      'inner': (np.array(step, np.int32), np.array([step, -step], np.float32)),
    }

  def observation_spec(self):
    return {
      'board': specs.Array((2, 3), np.float32),
      'inner': (specs.Array((), np.int32), specs.Array((2,), np.float32)),
    }

  def action_spec(self):
    return {
      'move': specs.DiscreteArray(4, np.int32),
      'force': specs.BoundedArray((2,), np.float32, -1, 1),
    }

  def reward_spec(self):
    return specs.Array((), np.float32)

  def discount_spec(self):
    return specs.BoundedArray((), np.float32, 0, 1)

  def close(self):
    self.num_closes += 1

  def _override(self, timestep):
    if self._step != self._override_step:
      return timestep
    return timestep._replace(**self._overrides)
