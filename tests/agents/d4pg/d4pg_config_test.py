"""Tests of `agents/d4pg/config.py`."""

import pytest

from repertory.agents import d4pg


@pytest.mark.parametrize(
  ('name', 'value', 'expected'),
  [
    ('hidden_sizes', (3, 0), 'a tuple of integers of at least 1'),
    ('hidden_sizes', (), 'at least one'),
    ('image_torso', 'vgg', 'one of'),
    ('num_atoms', 1, 'at least 2'),
    ('vmax', -150.0, r'above vmin = -150.0'),
    ('vmax', float('inf'), 'finite in single precision'),
    ('vmax', float('nan'), 'finite in single precision'),
    ('vmin', -1e39, 'finite in single precision'),
    ('n_step', 0, 'at least 1'),
    ('discount', 1.1, r'in \[0, 1\]'),
    ('learning_rate', 0.0, 'positive'),
    ('max_gradient_norm', 0.0, 'positive'),
    ('max_action_gradient_norm', -1.0, 'positive'),
    ('target_update_period', 0, 'at least 1'),
    ('sigma', -0.1, 'at least 0'),
    ('sigma', float('inf'), 'finite'),
    ('samples_per_insert', 0.0, 'positive'),
  ],
)
def test_refuses(name, value, expected):
  with pytest.raises(ValueError, match=f'{name} must be {expected}'):
    d4pg.D4PGConfig(**{name: value})


def test_accepts_the_ends():
  d4pg.D4PGConfig(
    sigma=0.0, max_gradient_norm=None, max_action_gradient_norm=None,
    num_atoms=2,
  )  # fmt: skip
