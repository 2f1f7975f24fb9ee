"""Tests of `agents/d4pg/learning.py`."""

import dataclasses

import numpy as np
import pytest

from repertory.agents import d4pg
from support.agents import (
  numeric_gradients,
  policy_and_critic_twin,
  transition_updates,
)

CONFIG = d4pg.D4PGConfig(
  hidden_sizes=(4, 3),
  batch_size=transition_updates.B,
  discount=0.8,
  num_atoms=5,
  vmin=-2.0,
  vmax=2.0,
  learning_rate=0.05,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  target_update_period=2,
)


class Twin(policy_and_critic_twin.CategoricalTwin):
  """https://arxiv.org/abs/1804.08617, algorithm 1, in NumPy."""

  def act(self, arrays, observation):
    x = numeric_gradients.layer_norm_mlp(arrays, '', observation)
    return np.tanh(numeric_gradients.linear(arrays, 'head', x))

  def step(self, batch):
    config, observation = self.config, batch['observation']
    # ∂q/∂a by differences, each row clipped by itself.
    action = self.act(self.policy, observation)
    slopes = numeric_gradients.gradients(
      lambda arrays: np.sum(self.value(observation, arrays['a'])),
      {'a': action},
    )['a']
    if config.max_action_gradient_norm is not None:
      norms = np.linalg.norm(slopes, axis=-1, keepdims=True)
      slopes *= np.minimum(1, config.max_action_gradient_norm / norms)

    def policy_loss(arrays):
      return -np.mean(np.sum(slopes * self.act(arrays, observation), axis=-1))

    # The policy follows the critic as it was: its slopes are known by now.
    metrics = {
      'policy_value': np.mean(self.value(observation, action)),
      'policy_gradient_norm': self.descend('policy', policy_loss),
    }
    action_t = self.act(self.target_policy, batch['next_observation'])
    critic_metrics, sizes = self.improve_critic(batch, action_t)
    self.copy_to_target()
    return {**metrics, **critic_metrics}, sizes


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
def test_equals_the_twin(changes, jit_compile):
  config = dataclasses.replace(CONFIG, **changes)
  # In the second step the target networks differ, and after it they follow.
  batches = [transition_updates.make_continuous_batch(i) for i in range(2)]
  Twin(d4pg.D4PGBuilder(config)).check(batches, jit_compile)
