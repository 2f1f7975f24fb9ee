"""Shared parts of tests of actor-critic updates."""

import numpy as np
import tensorflow as tf

from repertory.agents.actor_critic import policy_and_critic
from support.agents import numeric_gradients, transition_updates


def make_networks(make_policy, make_critic, seed=0):
  """Returns online networks with random variables, and target networks.

  Initial variables may be 0 or small, which would be too simple a case.
  """
  tf.random.set_seed(seed)
  online, target = (
    policy_and_critic.Networks(make_policy(), make_critic()) for _ in range(2)
  )
  random = np.random.default_rng(seed)
  for variable in online.variables:
    variable.assign(random.normal(size=variable.shape))
  return online, target


class Twin:
  """Online and target parameters, as arrays by name."""

  def __init__(self, config, online, target):
    self.config = config
    self.policy, self.critic = map(transition_updates.arrays, online)
    self.target_policy, self.target_critic = map(
      transition_updates.arrays, target
    )
    self._descents = {}

  def descend(self, name, loss):
    """Takes a gradient step of 'policy' or 'critic'; returns the norm."""
    if name not in self._descents:
      config = self.config
      self._descents[name] = numeric_gradients.Descent(
        config.learning_rate, config.adam_epsilon, config.max_gradient_norm
      )
    moved, norm = self._descents[name].step(loss, getattr(self, name))
    setattr(self, name, moved)
    return norm

  def assert_like(self, online, target):
    """Checks that networks have the variables of this twin."""
    for module, expected in (
      (online.policy, self.policy),
      (online.critic, self.critic),
      (target.policy, self.target_policy),
      (target.critic, self.target_critic),
    ):
      transition_updates.assert_all_close(
        transition_updates.arrays(module), expected, tolerance=3e-4
      )
