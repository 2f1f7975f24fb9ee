"""Tests of `agents/iql/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import iql
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


class Twin:
  """Algorithm 1 of arXiv:2110.06169 in NumPy, in the authors' order."""

  def __init__(self, config):
    tf.random.set_seed(0)
    builder, self.config = iql.IQLBuilder(config), config
    self.update = builder.make_update(builder.make_network(SPEC), SPEC)
    self.modules = {
      **self.update._learned._asdict(),
      'target': self.update._target_critics,
    }
    self.arrays = {
      name: transition_updates.arrays(module)
      for name, module in self.modules.items()
    }
    self._descents = {
      name: numeric_gradients.Descent(
        config.learning_rate, config.adam_epsilon, config.max_gradient_norm
      )
      for name in self.modules
    }
    self.num_steps, self.counts = 0, []

  def descend(self, name, loss, share=1.0):
    """Takes a step; returns the loss before it, and the gradient's norm."""
    before = loss(self.arrays[name])
    self.arrays[name], norm = self._descents[name].step(
      loss, self.arrays[name], share
    )
    return before, norm

  def values(self, arrays, observation):
    x = numpy_offline.features(arrays, observation)
    return numeric_gradients.linear(arrays, 'value', x)[:, 0]

  def q(self, arrays, batch):
    return numpy_offline.values(
      arrays,
      self.config.num_critics,
      batch['observation'],
      transition_updates.scaled(batch),
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
    least = np.min(self.q(self.arrays['target'], batch), axis=-1)
    metrics['value'] = np.mean(self.values(self.arrays['value'], observation))

    def value_loss(arrays):
      total = 0.0
      for b, value in enumerate(self.values(arrays, observation)):
        error = least[b] - value
        share = config.expectile if error >= 0 else 1 - config.expectile
        total += weights[b] * share * error**2
      return total / B

    metrics['value_loss'], metrics['value_gradient_norm'] = self.descend(
      'value', value_loss
    )
    advantages = least - self.values(self.arrays['value'], observation)
    counts = np.minimum(
      np.exp(config.advantage_scale * advantages), config.max_weight
    )

    def policy_loss(arrays):
      action = transition_updates.scaled(batch)
      return -np.mean(
        counts * numpy_offline.log_prob(arrays, observation, action)
      )

    metrics['advantage'], metrics['weight'] = advantages.mean(), counts.mean()
    metrics['policy_loss'], metrics['policy_gradient_norm'] = self.descend(
      'policy', policy_loss, self.policy_share()
    )
    next_values = self.values(self.arrays['value'], batch['next_observation'])
    target = batch['reward'] + config.discount * batch['discount'] * next_values

    def critic_loss(arrays):
      errors = target[:, None] - self.q(arrays, batch)
      return np.mean(weights * np.sum(errors**2, axis=-1))

    q = self.q(self.arrays['critics'], batch)
    sizes = np.mean(np.abs(target[:, None] - q), axis=-1)
    metrics['q_value'], metrics['td_error'] = q.mean(), sizes.mean()
    metrics['critic_loss'], metrics['critic_gradient_norm'] = self.descend(
      'critics', critic_loss
    )
    self.num_steps += 1
    tau = config.target_update_rate
    for name, array in self.arrays['critics'].items():
      before = self.arrays['target'][name]
      self.arrays['target'][name] = (1 - tau) * before + tau * array
    self.counts += counts.tolist()
    return metrics, sizes


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
  twin = Twin(config)
  transition_updates.check_steps(
    twin.update,
    twin.step,
    [transition_updates.make_continuous_batch(i) for i in range(3)],
    lambda: [(twin.modules[name], twin.arrays[name]) for name in twin.modules],
    jit_compile,
  )
  if not changes:  # The premise: some weights are cut, and others are not.
    assert min(twin.counts) < 1
    assert max(twin.counts) == config.max_weight
