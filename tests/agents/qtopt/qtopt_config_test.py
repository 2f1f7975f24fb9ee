"""Tests of `agents/qtopt/config.py`."""

import pytest

from repertory.agents import qtopt


@pytest.mark.parametrize(
  ('name', 'value', 'expected'),
  [
    ('hidden_sizes', (3, 0), 'a tuple of integers of at least 1'),
    ('image_torso', 'vgg', 'one of'),
    ('num_samples', 0, 'at least 1'),
    ('num_elites', 0, 'at least 1'),
    ('num_elites', 65, 'at most num_samples = 64'),
    ('num_iterations', 0, 'at least 1'),
    ('initial_stddev', 0.0, 'positive'),
    ('n_step', 0, 'at least 1'),
    ('learning_rate', 0.0, 'positive'),
    ('adam_epsilon', 0.0, 'positive'),
    ('max_gradient_norm', 0.0, 'positive'),
    ('target_update_rate', 0.0, 'positive'),
    ('target_update_rate', 1.5, r'in \[0, 1\]'),
    ('target_lag', 0, 'at least 1'),
    ('sigma', -0.1, 'at least 0'),
    ('num_random_steps', -1, 'at least 0'),
  ],
)
def test_refuses(name, value, expected):
  with pytest.raises(ValueError, match=f'{name} must be {expected}'):
    qtopt.QTOptConfig(**{name: value})


def test_accepts_the_ends():
  qtopt.QTOptConfig(
    num_samples=1, num_elites=1, num_iterations=1, target_update_rate=1.0,
    target_lag=1, sigma=0.0, num_random_steps=0,
  )  # fmt: skip
