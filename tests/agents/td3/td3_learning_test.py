"""Tests of `agents/td3/learning.py`."""

import dataclasses

import numpy as np
import pytest

from repertory.agents import td3
from support.agents import (
  numeric_gradients,
  numpy_dqn,
  numpy_offline,
  policy_and_critic_twin,
  transition_updates,
)

B, D = transition_updates.B, transition_updates.D
CONFIG = td3.TD3Config(
  hidden_sizes=(4,),
  batch_size=B,
  discount=0.8,
  learning_rate=0.05,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  target_sigma=0.4,
  target_update_rate=0.3,
)


class Twin(policy_and_critic_twin.Twin):
  """Algorithm 1 of arXiv:1802.09477 in NumPy, step by step."""

  def __init__(self, builder):
    super().__init__(builder)
    self.policy_metrics = {'policy_value': 0.0, 'policy_gradient_norm': 0.0}

  def values(self, arrays, observation, action):
    return numpy_offline.values(
      arrays, self.config.num_critics, observation, action
    )

  def act(self, arrays, observation):
    x = numpy_offline.features(arrays, observation)
    return np.tanh(numeric_gradients.linear(arrays, 'head', x))

  def step(self, batch):
    config = self.config
    noise = np.clip(
      config.target_sigma * batch['noise'],
      -config.target_noise_limit,
      config.target_noise_limit,
    )
    action = self.act(self.target_policy, batch['next_observation']) + noise
    action = np.clip(action, -1, 1)
    q = self.values(self.target_critic, batch['next_observation'], action)
    least = np.min(q, axis=-1)
    target = batch['reward'] + config.discount * batch['discount'] * least
    scaled = transition_updates.scaled(batch)
    weights = numpy_dqn.weights(batch, config)

    def critic_loss(arrays):
      q = self.values(arrays, batch['observation'], scaled)
      losses = np.sum((target[:, None] - q) ** 2, axis=-1)
      return np.mean(weights * losses)

    q = self.values(self.critic, batch['observation'], scaled)
    sizes = np.mean(np.abs(target[:, None] - q), axis=-1)
    metrics = {
      'critic_loss': critic_loss(self.critic),
      'td_error': np.mean(sizes),
      'q_value': np.mean(q),
    }
    metrics['critic_gradient_norm'] = self.descend('critic', critic_loss)
    self.num_steps += 1
    if self.num_steps % config.policy_update_period == 0:
      self._improve_policy(batch['observation'], scaled)
    return {**metrics, **self.policy_metrics}, sizes

  def _improve_policy(self, observation, action_of_data):
    def value(arrays):
      action = self.act(arrays, observation)
      return self.values(self.critic, observation, action)[:, 0]

    def loss(arrays):
      alpha = self.config.behavior_cloning_alpha
      if alpha is None:
        return -np.mean(value(arrays))
      # arXiv:2106.06860, equations 4 and 5.
      distance = self.act(arrays, observation) - action_of_data
      scale = alpha / np.mean(np.abs(fixed))
      return np.mean(distance**2) - scale * np.mean(value(arrays))

    fixed = value(self.policy)
    self.policy_metrics = {
      'policy_value': np.mean(fixed),
      'policy_gradient_norm': self.descend('policy', loss),
    }
    tau = self.config.target_update_rate
    for targets, online in (
      (self.target_policy, self.policy),
      (self.target_critic, self.critic),
    ):
      for name, array in online.items():
        targets[name] = (1 - tau) * targets[name] + tau * array


@pytest.mark.parametrize(
  ('changes', 'jit_compile'),
  [
    pytest.param({}, None, id='default'),
    pytest.param({}, True, id='xla', marks=pytest.mark.chaos),
    pytest.param(td3.PRESETS['ddpg'], None, id='ddpg'),
    pytest.param(
      {
        'prioritized': True,
        'target_noise_limit': 0.1,
        'max_gradient_norm': 0.3,
        'num_critics': 3,
        'policy_update_period': 3,
        'behavior_cloning_alpha': 2.5,
      },
      None,
      id='cloning',
    ),
  ],
)
def test_equals_the_twin(changes, jit_compile):
  config = dataclasses.replace(CONFIG, **changes)
  batches = [
    transition_updates.make_continuous_batch(i, (B, D)) for i in range(3)
  ]
  Twin(td3.TD3Builder(config)).check(batches, jit_compile)
