"""Tests of `agents/r2d2/config.py`."""

import pytest

from repertory.agents import r2d2


def test_returns_are_no_longer_than_what_is_learned_from():
  config = r2d2.R2D2Config(burn_in_length=9, unroll_length=4, n_step=4)
  assert config.n_step == 4
  with pytest.raises(
    ValueError, match=r'^n_step must be at most unroll_length = 4, got 5[.]$'
  ):
    r2d2.R2D2Config(burn_in_length=9, unroll_length=4, n_step=5)


@pytest.mark.parametrize(
  ('name', 'value', 'expected'),
  [
    ('core', 'none', 'one of'),
    ('burn_in_length', -1, 'at least 0'),
    ('sequence_period', 17, r'in \[1, unroll_length\] = \[1, 16\]'),
    ('discount', 1.1, r'in \[0, 1\]'),
    ('rescale_epsilon', 0.0, 'positive'),
    ('min_replay_size', 0, 'at least 1'),
    ('max_priority_share', 1.5, r'in \[0, 1\]'),
    ('epsilon_base', 0.0, r'in \(0, 1\]'),
  ],
)
def test_refuses(name, value, expected):
  with pytest.raises(ValueError, match=f'{name} must be {expected}'):
    r2d2.R2D2Config(**{name: value})


@pytest.mark.parametrize('name', r2d2.PRESETS)
def test_presets_fit(name):
  r2d2.R2D2Config(**r2d2.PRESETS[name])
