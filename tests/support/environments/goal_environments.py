"""Environments with goals: flipping bits, and a point in the plane."""

import dm_env
import numpy as np
from dm_env import specs


class _GoalEnvironment(dm_env.Environment):
  """Rewards are 0 at the goal and −1 elsewhere."""

  max_steps: int

  def __init__(self, seed):
    self._random = np.random.default_rng(seed)
    self._num_steps = None

  def compute_terminated(self, achieved_goal, desired_goal, info):
    del info
    return self._is_near(achieved_goal, desired_goal)

  def compute_reward(self, achieved_goal, desired_goal, info):
    del info
    near = self._is_near(achieved_goal, desired_goal)
    return np.where(near, 0, -1).astype(np.float32)

  def reset(self):
    self._num_steps = 0
    self._start()
    return dm_env.restart(self._observe())

  def step(self, action):
    if self._num_steps is None:
      return self.reset()
    self._move(action)
    self._num_steps += 1
    observation = self._observe()
    goals = observation['achieved_goal'], observation['desired_goal']
    reward = float(self.compute_reward(*goals, {}))
    if reward == 0:
      self._num_steps = None
      return dm_env.termination(reward, observation)
    if self._num_steps == self.max_steps:
      self._num_steps = None
      return dm_env.truncation(reward, observation)
    return dm_env.transition(reward, observation)

  def _observe(self):
    return {
      'observation': self._state.astype(np.float32),
      'achieved_goal': self._state.astype(np.float32),
      'desired_goal': self._goal.astype(np.float32),
    }

  def observation_spec(self):
    names = 'observation', 'achieved_goal', 'desired_goal'
    return {name: specs.Array((self._size,), np.float32) for name in names}


class BitFlip(_GoalEnvironment):
  """Flip bits, one in each of n steps, until they equal those of the goal."""

  def __init__(self, seed, size: int = 15):
    super().__init__(seed)
    self._size = self.max_steps = size

  def _start(self):
    self._state, self._goal = self._random.integers(2, size=(2, self._size))
    if (self._state == self._goal).all():
      self._goal[0] = 1 - self._goal[0]

  def _move(self, action):
    self._state = self._state.copy()
    self._state[action] = 1 - self._state[action]

  def _is_near(self, achieved, desired):
    return (np.asarray(achieved) == np.asarray(desired)).all(-1)

  def action_spec(self):
    return specs.DiscreteArray(self._size, np.int32)


class Point(_GoalEnvironment):
  """Move a point in the unit square to a goal, in 25 steps of up to 0.1."""

  _size, max_steps = 2, 25

  def _start(self):
    self._state, self._goal = self._random.uniform(size=(2, 2))

  def _move(self, action):
    self._state = np.clip(self._state + 0.1 * np.asarray(action), 0, 1)

  def _is_near(self, achieved, desired):
    return np.linalg.norm(np.subtract(achieved, desired), axis=-1) < 0.04

  def action_spec(self):
    return specs.BoundedArray((2,), np.float32, -1, 1)
