"""Tests of `agents/iql/config.py`."""

import pytest

from repertory.agents import iql


@pytest.mark.parametrize(
  ('name', 'value', 'expected'),
  [
    ('hidden_sizes', (3, 0), 'a tuple of integers of at least 1'),
    ('image_torso', 'vgg', 'one of'),
    ('num_critics', 0, 'at least 1'),
    ('expectile', 0.0, 'between 0 and 1'),
    ('expectile', 1.0, 'between 0 and 1'),
    ('expectile', float('nan'), 'between 0 and 1'),
    ('advantage_scale', -0.1, 'at least 0'),
    ('max_weight', 0.5, 'at least 1'),
    ('n_step', 0, 'at least 1'),
    ('policy_anneal_learner_steps', 0, 'at least 1'),
    ('target_update_rate', 0.0, 'positive'),
    ('target_update_rate', 1.5, r'in \[0, 1\]'),
    ('max_gradient_norm', 0.0, 'positive'),
    ('samples_per_insert', 0.0, 'positive'),
  ],
)
def test_refuses(name, value, expected):
  with pytest.raises(ValueError, match=f'{name} must be {expected}'):
    iql.IQLConfig(**{name: value})


def test_accepts_the_ends():
  iql.IQLConfig(
    advantage_scale=0.0, max_weight=1.0, target_update_rate=1.0, num_critics=1
  )
