"""Tests of `agents/td3/config.py`."""

import pytest

from repertory.agents import td3


@pytest.mark.parametrize(
  ('name', 'value', 'expected'),
  [
    ('hidden_sizes', (3, 0), 'a tuple of integers of at least 1'),
    ('image_torso', 'vgg', 'one of'),
    ('num_critics', 0, 'at least 1'),
    ('policy_update_period', 0, 'at least 1'),
    ('policy_update_period', 1.5, 'an integer'),
    ('n_step', 0, 'at least 1'),
    ('discount', 1.1, r'in \[0, 1\]'),
    ('learning_rate', 0.0, 'positive'),
    ('sigma', -0.1, 'at least 0'),
    ('sigma', float('nan'), 'at least 0'),
    ('target_sigma', -0.1, 'at least 0'),
    ('target_noise_limit', -0.1, 'at least 0'),
    ('target_update_rate', 0.0, 'positive'),
    ('target_update_rate', 1.5, r'in \[0, 1\]'),
    ('max_gradient_norm', 0.0, 'positive'),
    ('num_random_steps', -1, 'at least 0'),
    ('behavior_cloning_alpha', 0.0, 'positive'),
    ('samples_per_insert', 0.0, 'positive'),
  ],
)
def test_refuses(name, value, expected):
  with pytest.raises(ValueError, match=f'{name} must be {expected}'):
    td3.TD3Config(**{name: value})


def test_accepts_the_ends():
  td3.TD3Config(
    target_update_rate=1.0, sigma=0.0, target_sigma=0.0, num_random_steps=0,
    target_noise_limit=0.0, policy_update_period=1, num_critics=1,
    discount=1.0, max_gradient_norm=None,
  )  # fmt: skip
