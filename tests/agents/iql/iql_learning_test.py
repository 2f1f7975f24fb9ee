"""Tests of `agents/iql/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import iql
from repertory.agents.iql import learning
from repertory.components.actions import action_scaling
from support.agents import (
  numeric_gradients,
  numpy_dqn,
  numpy_offline,
  transition_updates,
)

B = transition_updates.B
SPEC = transition_updates.CONTINUOUS_SPEC
CONFIG = iql.IQLConfig(
  hidden_sizes=(4,),
  batch_size=B,
  discount=0.8,
  learning_rate=0.05,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  target_update_rate=0.3,
  max_weight=1.1,
)


class _Learned:
  """Arrays of a network, with Adam."""

  def __init__(self, module, config):
    self.arrays = transition_updates.arrays(module)
    self._descent = numeric_gradients.Descent(
      config.learning_rate, config.adam_epsilon, config.max_gradient_norm
    )

  def descend(self, loss, share=1.0):
    """Takes a step; returns the loss before it, and the gradient's norm."""
    before = loss(self.arrays)
    self.arrays, norm = self._descent.step(loss, self.arrays, share)
    return before, norm


class Twin:
  """Algorithm 1 of arXiv:2110.06169 in NumPy, in the authors' order."""

  def __init__(self, config, learned, target_critics):
    self.config = config
    self.policy, self.value, self.critics = (
      _Learned(module, config) for module in learned
    )
    self.target_critics = transition_updates.arrays(target_critics)
    self.num_steps = 0

  def values(self, arrays, observation):
    x = numpy_offline.features(arrays, observation)
    return numeric_gradients.linear(arrays, 'value', x)[:, 0]

  def q(self, arrays, batch):
    return numpy_offline.values(
      arrays,
      self.config.num_critics,
      batch['observation'],
      numpy_offline.scaled(batch),
    )

  def policy_share(self):
    """Factor of the policy's learning rate in the next step."""
    num_steps = self.config.policy_anneal_learner_steps
    if num_steps is None:
      return 1.0
    done = min(self.num_steps / num_steps, 1.0)
    return 0.5 * (1 + np.cos(np.pi * done))

  def step(self, batch):
    config, metrics = self.config, {}
    weights = numpy_dqn.weights(batch, config)
    observation = batch['observation']
    least = np.min(self.q(self.target_critics, batch), axis=-1)
    metrics['value'] = np.mean(self.values(self.value.arrays, observation))

    def value_loss(arrays):
      total = 0.0
      for b, value in enumerate(self.values(arrays, observation)):
        error = least[b] - value
        share = config.expectile if error >= 0 else 1 - config.expectile
        total += weights[b] * share * error**2
      return total / B

    metrics['value_loss'], metrics['value_gradient_norm'] = self.value.descend(
      value_loss
    )
    advantages = least - self.values(self.value.arrays, observation)
    counts = np.minimum(
      np.exp(config.advantage_scale * advantages), config.max_weight
    )

    def policy_loss(arrays):
      action = numpy_offline.scaled(batch)
      return -np.mean(
        counts * numpy_offline.log_prob(arrays, observation, action)
      )

    metrics['advantage'], metrics['weight'] = advantages.mean(), counts.mean()
    metrics['policy_loss'], metrics['policy_gradient_norm'] = (
      self.policy.descend(policy_loss, self.policy_share())
    )
    next_values = self.values(self.value.arrays, batch['next_observation'])
    target = batch['reward'] + config.discount * batch['discount'] * next_values

    def critic_loss(arrays):
      errors = target[:, None] - self.q(arrays, batch)
      return np.mean(weights * np.sum(errors**2, axis=-1))

    q = self.q(self.critics.arrays, batch)
    sizes = np.mean(np.abs(target[:, None] - q), axis=-1)
    metrics['q_value'], metrics['td_error'] = q.mean(), sizes.mean()
    metrics['critic_loss'], metrics['critic_gradient_norm'] = (
      self.critics.descend(critic_loss)
    )
    self.num_steps += 1
    tau = config.target_update_rate
    for name, array in self.critics.arrays.items():
      self.target_critics[name] = (1 - tau) * self.target_critics[
        name
      ] + tau * array
    return metrics, sizes, counts


def make(config):
  """Returns online networks, target critics and update."""
  tf.random.set_seed(0)
  builder = iql.IQLBuilder(config)
  learned = learning.IQLNetworks(
    builder.make_network(SPEC),
    builder.make_value_network(SPEC),
    builder.make_critics(SPEC),
  )
  target_critics = builder.make_critics(SPEC)
  scaling = action_scaling.ActionScaling(SPEC.actions)
  update = learning.IQLUpdate(learned, target_critics, scaling, config)
  return learned, target_critics, update


@pytest.mark.parametrize(
  ('changes', 'jit_compile'),
  [
    pytest.param({}, None, id='default'),
    pytest.param({'expectile': 0.9}, True, id='xla', marks=pytest.mark.chaos),
    pytest.param({'policy_anneal_learner_steps': 3}, True, id='annealed'),
    pytest.param(
      {'prioritized': True, 'num_critics': 3, 'max_gradient_norm': 0.3},
      None,
      id='prioritized',
    ),
  ],
)
def test_equals_the_twin(changes, jit_compile):
  config = dataclasses.replace(CONFIG, **changes)
  learned, target_critics, update = make(config)
  twin = Twin(config, learned, target_critics)
  call = tf.function(update, autograph=False, jit_compile=jit_compile)
  counts = []
  for i in range(3):
    batch = transition_updates.make_continuous_batch(i)
    result = call(transition_updates.to_sample(batch))
    metrics, sizes, used = twin.step(batch)
    counts += used.tolist()
    priorities = sizes if config.prioritized else None
    transition_updates.assert_step(result, metrics, priorities)
    for module, expected in (
      (learned.policy, twin.policy.arrays),
      (learned.value, twin.value.arrays),
      (learned.critics, twin.critics.arrays),
      (target_critics, twin.target_critics),
    ):
      transition_updates.assert_all_close(
        transition_updates.arrays(module), expected, tolerance=2e-4
      )
  if not changes:  # The premise: some weights are cut, and others are not.
    assert min(counts) < 1
    assert max(counts) == config.max_weight
