"""Tests of `agents/crr/learning.py`."""

import dataclasses

import numpy as np
import pytest

from repertory.agents import crr
from support.agents import (
  numpy_offline,
  policy_and_critic_twin,
  transition_updates,
)

B, D = transition_updates.B, transition_updates.D
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


class Twin(policy_and_critic_twin.CategoricalTwin):
  """Algorithm 1 of arXiv:2006.15134 in NumPy, the policy first.

  Attributes:
    counts: All weights of actions.
  """

  def __init__(self, builder):
    super().__init__(builder)
    self.counts = []

  def step(self, batch):
    observation = batch['observation']
    action = transition_updates.scaled(batch)
    advantages, counts = self.weigh(observation, action, batch['noise'][1:])
    self.counts += counts.tolist()

    def policy_loss(arrays):
      return -np.mean(
        counts * numpy_offline.log_prob(arrays, observation, action)
      )

    metrics = {
      'advantage': advantages.mean(),
      'weight': counts.mean(),
      'policy_loss': policy_loss(self.policy),
      'policy_gradient_norm': self.descend('policy', policy_loss),
    }
    action_t = numpy_offline.sample(
      self.target_policy, batch['next_observation'], batch['noise'][0]
    )
    critic_metrics, sizes = self.improve_critic(batch, action_t)
    self.copy_to_target()
    return {**metrics, **critic_metrics}, sizes

  def weigh(self, observation, action, noise):
    """Returns advantages and weights, row by row."""
    config, advantages, counts = self.config, [], []
    q = self.value(observation, action)
    for b in range(B):
      row = observation[b : b + 1]
      others = []
      for one in noise:
        drawn = numpy_offline.sample(self.policy, row, one[b : b + 1])
        others.append(self.value(row, drawn)[0])
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
  twin = Twin(crr.CRRBuilder(config))
  shape = 1 + config.num_action_samples, B, D
  batches = [
    transition_updates.make_continuous_batch(i, shape) for i in range(3)
  ]
  twin.check(batches, jit_compile)
  # The premise: actions do not all count the same.
  assert min(twin.counts) < 1 <= max(twin.counts)
  if config.advantage_weights == 'exp':
    assert max(twin.counts) == config.max_weight
