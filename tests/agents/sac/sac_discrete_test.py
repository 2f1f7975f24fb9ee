"""Tests of `agents/sac/learning.py` with discrete actions."""

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import sac
from repertory.agents.actor_critic import policy_and_critic
from repertory.agents.sac import learning, networks
from support.agents import (
  numeric_gradients,
  numpy_dqn,
  numpy_sac,
  transition_updates,
)

arrays = transition_updates.arrays
to_sample = transition_updates.to_sample
B, A = transition_updates.B, 3
SPEC = transition_updates.DISCRETE_SPEC
CONFIG = sac.SACConfig(
  hidden_sizes=(4,),
  critic_hidden_sizes=(5,),
  batch_size=B,
  discount=0.8,
  learning_rate=0.05,
  policy_learning_rate=0.03,
  temperature_learning_rate=0.1,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  initial_temperature=0.4,
  target_update_rate=0.3,
)


def make_batch(seed):
  batch = transition_updates.make_continuous_batch(seed)
  random = np.random.default_rng(seed)
  return {**batch, 'action': random.integers(A, size=B)}


def make(config):
  """Returns policy network, critics, target critics and update."""
  tf.random.set_seed(0)
  policy = networks.make_policy_network(SPEC, config)
  critics, targets = (networks.DiscreteCritics(SPEC, config) for _ in range(2))
  online = policy_and_critic.Networks(policy, critics)
  update = learning.SACUpdate(online, targets, SPEC.actions, config)
  # After the constructor's copy, so that the two differ from the start.
  random = np.random.default_rng(0)
  for module in (policy, critics, targets):
    for variable in module.variables:
      variable.assign(random.normal(size=variable.shape))
  return policy, critics, targets, update


class Twin:
  """The equations of arXiv:1910.07207 in NumPy, action by action."""

  def __init__(self, config, policy, critics, targets):
    self.config = config
    self.policy, self.critics, self.targets = policy, critics, targets
    self.log_temperature = {
      '': np.array([math.log(config.initial_temperature)])
    }
    self._descents = numpy_sac.make_descents(config)

  def outputs(self, arrays, torso, head, observation):
    x = numeric_gradients.linear(arrays, f'{torso}/mlp/linear_0', observation)
    return numeric_gradients.linear(arrays, head, np.maximum(x, 0))

  def values(self, arrays, observation):
    """Returns the outputs of each critic, `[N, B, A]`."""
    return np.array(
      [
        self.outputs(
          arrays, f'critics/torso_{i}', f'critics/head_{i}', observation
        )
        for i in range(self.config.num_critics)
      ]
    )

  def act(self, arrays, observation):
    powers = np.exp(
      self.outputs(arrays, 'observation_torso', 'head', observation)
    )
    return powers / powers.sum(axis=-1, keepdims=True)

  def step(self, batch):
    config = self.config
    temperature = np.exp(self.log_temperature[''][0])
    policy = self.act(self.policy, batch['next_observation'])
    least = self.values(self.targets, batch['next_observation']).min(axis=0)
    value = np.zeros(B)
    for a in range(A):
      soft = least[:, a] - temperature * np.log(policy[:, a])
      value += policy[:, a] * soft
    target = batch['reward'] + config.discount * batch['discount'] * value
    weights = numpy_dqn.weights(batch, config)

    def errors(arrays):
      q = self.values(arrays, batch['observation'])
      return target - q[:, np.arange(B), batch['action']]  # [N, B]

    def critic_loss(arrays):
      return np.mean(weights * np.sum(errors(arrays) ** 2, axis=0)) / 2

    sizes = np.mean(np.abs(errors(self.critics)), axis=0)
    metrics = {
      'critic_loss': critic_loss(self.critics),
      'td_error': np.mean(sizes),
      'q_value': np.mean(self.values(self.critics, batch['observation'])),
      'temperature': temperature,
    }
    descent = self._descents['critics']
    self.critics, metrics['critic_gradient_norm'] = descent.step(
      critic_loss, self.critics
    )
    q = self.values(self.critics, batch['observation'])
    rated = np.mean(q, 0) if config.critics_of_policy == 'mean' else q.min(0)

    def policy_loss(arrays):
      policy = self.act(arrays, batch['observation'])
      costs = policy * (temperature * np.log(policy) - rated)
      return np.mean(np.sum(costs, axis=-1))

    policy = self.act(self.policy, batch['observation'])
    log_prob = np.sum(policy * np.log(policy), axis=-1)
    metrics['policy_loss'] = policy_loss(self.policy)
    metrics['entropy'] = -np.mean(log_prob)
    descent = self._descents['policy']
    self.policy, metrics['policy_gradient_norm'] = descent.step(
      policy_loss, self.policy
    )
    aim = config.target_entropy
    if aim is None:
      aim = 0.98 * math.log(A)
    self.log_temperature, _ = self._descents['temperature'].step(
      lambda arrays: -np.exp(arrays[''][0]) * np.mean(log_prob + aim),
      self.log_temperature,
    )
    tau = config.target_update_rate
    for name, array in self.critics.items():
      self.targets[name] = (1 - tau) * self.targets[name] + tau * array
    return metrics, sizes


class TestSACUpdateOfDiscreteActions:
  @pytest.mark.parametrize(
    ('changes', 'jit_compile'),
    [
      pytest.param({'prioritized': True}, None, id='prioritized'),
      pytest.param(
        {'target_entropy': 0.2, 'critics_of_policy': 'mean', 'num_critics': 3},
        True,
        id='mean_of_three_xla',
        marks=pytest.mark.chaos,
      ),
    ],
  )
  def test_equals_the_twin(self, changes, jit_compile):
    config = dataclasses.replace(CONFIG, **changes)
    policy, critics, targets, update = make(config)
    twin = Twin(config, arrays(policy), arrays(critics), arrays(targets))
    call = tf.function(update, autograph=False, jit_compile=jit_compile)
    for i in range(2):
      batch = make_batch(i)
      result = call(to_sample(batch))
      metrics, sizes = twin.step(batch)
      priorities = sizes if config.prioritized else None
      transition_updates.assert_step(result, metrics, priorities)
      for module, expected in (
        (policy, twin.policy),
        (critics, twin.critics),
        (targets, twin.targets),
      ):
        transition_updates.assert_all_close(
          arrays(module), expected, tolerance=2e-4
        )


@pytest.mark.parametrize(
  ('changes', 'expected'),
  [
    (sac.PRESETS['droq'], r'dropout_rate must be 0\.0 for discrete actions'),
    (sac.PRESETS['tqc'], 'num_quantiles must be None for discrete actions'),
    (sac.PRESETS['cql'], 'conservative_weight must be None for discrete'),
    (sac.PRESETS['crossq'], 'target_update_rate must be a number for discrete'),
  ],
)
def test_refuses_what_is_for_continuous_actions(changes, expected):
  agent = sac.SACBuilder(sac.SACConfig(**{**changes, 'hidden_sizes': (4,)}))
  with pytest.raises(ValueError, match=expected):
    agent.make_network(SPEC)
