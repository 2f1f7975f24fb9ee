"""Scripted Gymnasium environment for tests."""

import gymnasium
from gymnasium import spaces


class FakeGymEnv(gymnasium.Env):
  """Returns scripted values, and records its arguments."""

  def __init__(
    self,
    observation_space=None,
    action_space=None,
    observation=0,
    reward=0.0,
    terminated=False,
    truncated=False,
  ):
    # Falsy spaces, such as an empty `Dict`, are kept.
    trivial = spaces.Discrete(1)
    self.observation_space = (
      trivial if observation_space is None else observation_space
    )
    self.action_space = trivial if action_space is None else action_space
    self.observation = observation
    self.outcome = (reward, terminated, truncated, {})
    self.actions = []
    self.seeds = []

  def reset(self, *, seed=None, options=None):
    del options
    self.seeds.append(seed)
    return self.observation, {}

  def step(self, action):
    self.actions.append(action)
    return (self.observation, *self.outcome)
