"""Tests of `agents/crr/config.py`."""

import pytest

from repertory.agents import crr


@pytest.mark.parametrize(
  ('name', 'value', 'expected'),
  [
    ('hidden_sizes', (3, 0), 'a tuple of integers of at least 1'),
    ('image_torso', 'vgg', 'one of'),
    ('hidden_sizes', (), 'at least one'),
    ('num_atoms', 1, 'at least 2'),
    ('vmin', -1e39, 'finite in single precision'),
    ('vmax', -150.0, r'above vmin = -150.0'),
    ('vmax', float('nan'), 'finite in single precision'),
    ('advantage_weights', 'linear', r"one of \['exp', 'binary'\]"),
    ('advantage_baseline', 'least', r"one of \['mean', 'max'\]"),
    ('num_action_samples', 0, 'at least 1'),
    ('advantage_temperature', 0.0, 'positive'),
    ('max_weight', 0.5, 'at least 1'),
    ('n_step', 0, 'at least 1'),
    ('target_update_period', 0, 'at least 1'),
    ('max_gradient_norm', 0.0, 'positive'),
    ('samples_per_insert', 0.0, 'positive'),
  ],
)
def test_refuses(name, value, expected):
  with pytest.raises(ValueError, match=f'{name} must be {expected}'):
    crr.CRRConfig(**{name: value})


def test_accepts_the_ends():
  crr.CRRConfig(
    num_atoms=2, num_action_samples=1, max_weight=1.0,
    target_update_period=1, max_gradient_norm=None,
  )  # fmt: skip
