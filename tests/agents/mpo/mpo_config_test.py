"""Tests of `agents/mpo/config.py`."""

import pytest

from repertory.agents import mpo


@pytest.mark.parametrize(
  ('name', 'value', 'expected'),
  [
    ('hidden_sizes', (3, 0), 'a tuple of integers of at least 1'),
    ('hidden_sizes', (), 'at least one number'),
    ('image_torso', 'vgg', 'one of'),
    ('distribution', 'quantile', 'one of'),
    ('num_atoms', 1, 'at least 2'),
    ('vmax', -150.0, 'above vmin'),
    ('vmin', float('inf'), 'finite'),
    ('num_samples', 0, 'at least 1'),
    ('num_samples', 1.5, 'an integer'),
    ('n_step', 0, 'at least 1'),
    ('discount', 1.1, r'in \[0, 1\]'),
    ('learning_rate', 0.0, 'positive'),
    ('dual_learning_rate', 0.0, 'positive'),
    ('max_gradient_norm', 0.0, 'positive'),
    ('epsilon', 0.0, 'positive'),
    ('epsilon', float('nan'), 'positive'),
    ('epsilon_mean', -0.1, 'positive'),
    ('epsilon_stddev', 0.0, 'positive'),
    ('epsilon_policy', 0.0, 'positive'),
    ('epsilon_penalty', 0.0, 'positive'),
    ('initial_temperature', 0.0, 'positive'),
    ('initial_alpha_mean', 0.0, 'positive'),
    ('initial_alpha_stddev', float('inf'), 'finite'),
    ('initial_alpha_policy', 0.0, 'positive'),
    ('initial_stddev', 0.0, 'positive'),
    ('target_update_period', 0, 'at least 1'),
    ('samples_per_insert', 0.0, 'positive'),
  ],
)
def test_refuses(name, value, expected):
  with pytest.raises(ValueError, match=f'{name} must be {expected}'):
    mpo.MPOConfig(**{name: value})


def test_accepts_the_ends():
  mpo.MPOConfig(
    num_atoms=2, num_samples=1, n_step=1, discount=1.0, vmin=0.0, vmax=1e-3,
    max_gradient_norm=None, epsilon_penalty=None, target_update_period=1,
  )  # fmt: skip


def test_critic_outputs():
  assert mpo.MPOConfig(num_atoms=7).num_critic_outputs == 1
  config = mpo.MPOConfig(num_atoms=7, distribution='categorical')
  assert config.num_critic_outputs == 7
