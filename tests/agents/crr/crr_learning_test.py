"""Tests of `agents/crr/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import crr
from repertory.agents.crr import learning
from repertory.components.actions import action_scaling
from support.agents import (
  numeric_gradients,
  numpy_categorical,
  numpy_dqn,
  numpy_offline,
  policy_and_critic_twin,
  transition_updates,
)

B, D = transition_updates.B, transition_updates.D
SPEC = transition_updates.CONTINUOUS_SPEC
CONFIG = crr.CRRConfig(
  hidden_sizes=(4, 3),
  num_atoms=5,
  vmin=-2.0,
  vmax=2.0,
  batch_size=B,
  discount=0.8,
  learning_rate=0.05,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  target_update_period=3,
  num_action_samples=3,
  max_weight=1.05,
)


class Twin(policy_and_critic_twin.Twin):
  """Algorithm 1 of arXiv:2006.15134 in NumPy, the policy first."""

  def __init__(self, config, online, target):
    super().__init__(config, online, target)
    self.support = numpy_categorical.support(config)
    self._count = 0

  def probs(self, arrays, observation, action):
    x = np.concatenate([observation, action], axis=-1)
    x = numeric_gradients.layer_norm_mlp(arrays, 'critic/', x)
    logits = numeric_gradients.linear(arrays, 'critic/head', x)
    return numpy_categorical.softmax(logits)

  def step(self, batch, noise):
    config, metrics = self.config, {}
    observation, action = batch['observation'], numpy_offline.scaled(batch)
    advantages, counts = self.weigh(observation, action, noise[1:])

    def policy_loss(arrays):
      return -np.mean(
        counts * numpy_offline.log_prob(arrays, observation, action)
      )

    metrics['advantage'], metrics['weight'] = advantages.mean(), counts.mean()
    metrics['policy_loss'] = policy_loss(self.policy)
    metrics['policy_gradient_norm'] = self.descend('policy', policy_loss)
    target = self.target(batch, noise[0])
    weights = numpy_dqn.weights(batch, config)

    def divergences(arrays):
      probs = self.probs(arrays, observation, action)
      return numpy_categorical.divergences(target, probs)

    def critic_loss(arrays):
      return np.mean(weights * divergences(arrays))

    sizes = divergences(self.critic)
    q = self.probs(self.critic, observation, action) @ self.support
    metrics['q_value'] = q.mean()
    metrics['share_at_ends'] = np.mean(target[:, 0] + target[:, -1])
    metrics['critic_loss'] = critic_loss(self.critic)
    metrics['critic_gradient_norm'] = self.descend('critic', critic_loss)
    self._count += 1
    if self._count % config.target_update_period == 0:
      self.target_policy = dict(self.policy)
      self.target_critic = dict(self.critic)
    return metrics, sizes, counts

  def target(self, batch, noise):
    """The distribution of r + γ Z(s', a'), with an action a' of the target."""
    observation = batch['next_observation']
    action = numpy_offline.sample(self.target_policy, observation, noise)
    probs = self.probs(self.target_critic, observation, action)
    discount = self.config.discount * batch['discount']
    return numpy_categorical.project(
      batch['reward'], discount, probs, self.support
    )

  def weigh(self, observation, action, noise):
    """Returns advantages and weights, row by row."""
    config, advantages, counts = self.config, [], []
    q = self.probs(self.critic, observation, action) @ self.support
    for b in range(B):
      row = observation[b : b + 1]
      others = []
      for one in noise:
        drawn = numpy_offline.sample(self.policy, row, one[b : b + 1])
        (probs,) = self.probs(self.critic, row, drawn)
        others.append(np.sum(probs * self.support))
      usual = max(others)
      if config.advantage_baseline == 'mean':
        usual = sum(others) / len(others)
      advantages.append(q[b] - usual)
      if config.advantage_weights == 'binary':
        counts.append(1.0 if advantages[-1] > 0 else 0.0)
      else:
        power = np.exp(advantages[-1] / config.advantage_temperature)
        counts.append(min(power, config.max_weight))
    return np.array(advantages), np.array(counts)


def make(config):
  """Returns online networks, target networks and update."""
  builder = crr.CRRBuilder(config)
  online, target = policy_and_critic_twin.make_networks(
    lambda: builder.make_network(SPEC), lambda: builder.make_critic(SPEC)
  )
  scaling = action_scaling.ActionScaling(SPEC.actions)
  return online, target, learning.CRRUpdate(online, target, scaling, config)


@pytest.mark.parametrize(
  ('changes', 'jit_compile'),
  [
    pytest.param(
      {
        'prioritized': True,
        'max_gradient_norm': 0.3,
        'advantage_temperature': 0.5,
      },
      None,
      id='exp',
    ),
    pytest.param(
      crr.PRESETS['binary'], True, id='binary_xla', marks=pytest.mark.chaos
    ),
    pytest.param(crr.PRESETS['binary_max'], None, id='binary_max'),
  ],
)
def test_equals_the_twin(changes, jit_compile):
  config = dataclasses.replace(CONFIG, **changes)
  online, target, update = make(config)
  twin = Twin(config, online, target)
  noise = tf.Variable(tf.zeros([1 + config.num_action_samples, B, D]))
  update._noise.normals = lambda shape: noise.read_value()
  call = tf.function(update, autograph=False, jit_compile=jit_compile)
  counts = []
  for i in range(3):
    batch = transition_updates.make_continuous_batch(i)
    drawn = np.random.default_rng(100 + i).normal(size=noise.shape)
    noise.assign(drawn)
    result = call(transition_updates.to_sample(batch))
    metrics, sizes, used = twin.step(batch, drawn)
    counts += used.tolist()
    priorities = sizes if config.prioritized else None
    transition_updates.assert_step(result, metrics, priorities)
    twin.assert_like(online, target)
  # The premise: actions do not all count the same.
  assert min(counts) < 1 <= max(counts)
  if config.advantage_weights == 'exp':
    assert max(counts) == config.max_weight
