"""Tests of `agents/d4pg/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import d4pg
from repertory.agents.d4pg import learning
from repertory.components.actions import action_scaling
from support.agents import (
  numeric_gradients,
  numpy_categorical,
  numpy_dqn,
  policy_and_critic_twin,
  transition_updates,
)

make_batch = transition_updates.make_continuous_batch
to_sample = transition_updates.to_sample
B, D = transition_updates.B, transition_updates.D
SPEC = transition_updates.CONTINUOUS_SPEC
CONFIG = d4pg.D4PGConfig(
  hidden_sizes=(4, 3),
  batch_size=B,
  discount=0.8,
  num_atoms=5,
  vmin=-2.0,
  vmax=2.0,
  learning_rate=0.05,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  target_update_period=2,
)


def make(config, seed=0):
  """Returns online networks, target networks and update."""
  builder = d4pg.D4PGBuilder(config)
  online, target = policy_and_critic_twin.make_networks(
    lambda: builder.make_network(SPEC),
    lambda: builder.make_critic(SPEC),
    seed,
  )
  scaling = action_scaling.ActionScaling(SPEC.actions)
  return online, target, learning.D4PGUpdate(online, target, scaling, config)


def mlp(arrays, prefix, x):
  x = numeric_gradients.layer_norm_mlp(arrays, prefix, x)
  return numeric_gradients.linear(arrays, f'{prefix}head', x)


class Twin(policy_and_critic_twin.Twin):
  """https://arxiv.org/abs/1804.08617, algorithm 1, in NumPy."""

  def __init__(self, config, online, target):
    super().__init__(config, online, target)
    self.support = numpy_categorical.support(config)
    self._num_steps = 0

  def act(self, arrays, observation):
    return np.tanh(mlp(arrays, '', observation))

  def probs(self, arrays, observation, action):
    inputs = np.concatenate([observation, action], axis=-1)
    return numpy_categorical.softmax(mlp(arrays, 'critic/', inputs))

  def target(self, batch):
    observation = batch['next_observation']
    action = self.act(self.target_policy, observation)
    probs = self.probs(self.target_critic, observation, action)
    discount = self.config.discount * batch['discount']
    return numpy_categorical.project(
      batch['reward'], discount, probs, self.support
    )

  def step(self, batch):
    config, observation = self.config, batch['observation']
    target = self.target(batch)
    scaled = (batch['action'] - [1, 3]) / [2, 1]
    weights = numpy_dqn.weights(batch, config)

    def value(action):
      return self.probs(self.critic, observation, action) @ self.support

    # ∂q/∂a by differences, each row clipped by itself.
    action = self.act(self.policy, observation)
    slopes = numeric_gradients.gradients(
      lambda arrays: np.sum(value(arrays['a'])), {'a': action}
    )['a']
    if config.max_action_gradient_norm is not None:
      norms = np.linalg.norm(slopes, axis=-1, keepdims=True)
      slopes *= np.minimum(1, config.max_action_gradient_norm / norms)

    def policy_loss(arrays):
      return -np.mean(np.sum(slopes * self.act(arrays, observation), axis=-1))

    def divergences(arrays):
      probs = self.probs(arrays, observation, scaled)
      return numpy_categorical.divergences(target, probs)

    def critic_loss(arrays):
      return np.mean(weights * divergences(arrays))

    sizes = divergences(self.critic)
    metrics = {
      'critic_loss': critic_loss(self.critic),
      'q_value': np.mean(value(scaled)),
      'policy_value': np.mean(value(action)),
      'share_at_ends': np.mean(target[:, 0] + target[:, -1]),
    }
    # The policy follows the critic as it was: its slopes are known by now.
    metrics['policy_gradient_norm'] = self.descend('policy', policy_loss)
    metrics['critic_gradient_norm'] = self.descend('critic', critic_loss)
    self._num_steps += 1
    if self._num_steps % config.target_update_period == 0:
      self.target_policy, self.target_critic = self.policy, self.critic
    return metrics, sizes


class TestD4PGUpdate:
  @pytest.mark.parametrize(
    ('changes', 'jit_compile'),
    [
      pytest.param({}, None, id='default'),
      pytest.param({}, True, id='xla', marks=pytest.mark.chaos),
      pytest.param(
        {
          'prioritized': True,
          'max_gradient_norm': 0.1,
          'max_action_gradient_norm': 0.2,
        },
        None,
        id='prioritized_clipped',
      ),
    ],
  )
  def test_equals_the_twin(self, changes, jit_compile):
    config = dataclasses.replace(CONFIG, **changes)
    online, target, update = make(config)
    twin = Twin(config, online, target)
    call = tf.function(update, autograph=False, jit_compile=jit_compile)
    # In the second step the target networks differ, and after it they follow.
    for i in range(2):
      batch = make_batch(i)
      result = call(to_sample(batch))
      metrics, sizes = twin.step(batch)
      priorities = sizes if config.prioritized else None
      transition_updates.assert_step(result, metrics, priorities)
      twin.assert_like(online, target)
