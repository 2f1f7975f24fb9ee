"""Tests of `agents/vmpo/config.py`, and of its use by the builder."""

import pytest

from repertory.agents import vmpo
from support.agents import sequence_updates


class TestSettings:
  @pytest.mark.parametrize(
    ('settings', 'message'),
    [
      ({'shared_sizes': (4, 0)}, 'shared_sizes must be a tuple'),
      ({'hidden_sizes': 64}, 'hidden_sizes must be a tuple of .*, got 64'),
      ({'image_torso': 'x'}, 'image_torso must be one of'),
      ({'core': 'x'}, 'core must be one of'),
      ({'batch_size': 0}, 'batch_size must be at least 1'),
      ({'num_epochs': 0}, 'num_epochs must be at least 1'),
      ({'num_minibatches': 0}, 'num_minibatches must be at least 1'),
      ({'target_update_period': 0}, 'target_update_period must be at least 1'),
      ({'anneal_learner_steps': 0}, 'anneal_learner_steps must be at least 1'),
      ({'lambda_': 1.1}, r'lambda_ must be in \[0, 1\]'),
      ({'baseline_cost': -1.0}, 'baseline_cost must be at least 0'),
      *(
        ({name: 0.0}, f'{name} must be positive')
        for name in (
          'epsilon', 'epsilon_policy', 'epsilon_mean', 'epsilon_stddev',
          'initial_temperature', 'initial_alpha_policy', 'initial_alpha_mean',
          'initial_alpha_stddev', 'dual_learning_rate', 'max_gradient_norm',
        )
      ),
    ],
  )  # fmt: skip
  def test_what_is_wrong_is_named(self, settings, message):
    with pytest.raises(ValueError, match=message):
      vmpo.VMPOConfig(**settings)

  @pytest.mark.parametrize(
    ('num_environments', 'size'), [(1, 8), (3, 9), (8, 8), (12, 12)]
  )
  def test_a_batch_is_all_environments_unrolls(self, num_environments, size):
    experience = vmpo.VMPOBuilder().experience(
      sequence_updates.SPEC, num_environments
    )
    assert experience.batch_size == size
    assert experience.table.max_size == size + num_environments
    experience.check(num_environments)

  @pytest.mark.parametrize(
    ('changes', 'limit'), [({}, 5), ({'core': 'gru'}, 2)]
  )
  def test_a_minibatch_has_a_better_half(self, changes, limit):
    settings = {'batch_size': 2, 'unroll_length': 5, **changes}
    fits = vmpo.VMPOConfig(**settings, num_minibatches=limit)
    assert fits.batch_size_for(1) == 2
    config = vmpo.VMPOConfig(**settings, num_minibatches=limit + 1)
    with pytest.raises(
      ValueError,
      match=f'num_minibatches must be at most {limit}, because a batch',
    ):
      config.batch_size_for(1)
