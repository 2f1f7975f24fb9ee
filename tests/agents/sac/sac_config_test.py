"""Tests of `agents/sac/config.py`."""

import pytest

from repertory.agents import sac


@pytest.mark.parametrize(
  ('name', 'value', 'expected'),
  [
    ('hidden_sizes', (3, 0), 'a tuple of integers of at least 1'),
    ('image_torso', 'vgg', 'one of'),
    ('critic_hidden_sizes', (3, 0), 'a tuple of integers of at least 1'),
    ('body', 'mpl', 'one of'),
    ('critic_body', 'mpl', 'one of'),
    ('dropout_rate', 1.0, r'in \[0, 1\)'),
    ('dropout_rate', 0.1, "0 for critics of body 'mlp'"),
    ('adam_first_decay', 1.0, r'in \[0, 1\)'),
    ('conservative_weight', -1.0, 'at least 0'),
    ('num_conservative_actions', 0, 'at least 1'),
    ('policy_learning_rate', 0.0, 'positive'),
    ('num_quantiles', 0, 'at least 1'),
    ('num_dropped_quantiles', 1, '0 without num_quantiles'),
    ('num_dropped_quantiles', -1, 'at least 0'),
    ('num_critics', 0, 'at least 1'),
    ('num_target_critics', 3, 'at most num_critics = 2'),
    ('num_target_critics', 0, 'at least 1'),
    ('critics_of_policy', 'largest', 'one of'),
    ('policy_update_period', 0, 'at least 1'),
    ('n_step', 0, 'at least 1'),
    ('discount', 1.1, r'in \[0, 1\]'),
    ('batch_size', 2.5, 'an integer'),
    ('learning_rate', None, 'a number'),
    ('n_step', None, 'an integer'),
    ('learning_rate', 0.0, 'positive'),
    ('temperature_learning_rate', -1e-3, 'at least 0'),
    ('initial_temperature', 0.0, 'positive'),
    ('initial_temperature', 1e39, 'finite'),
    ('target_entropy', float('nan'), 'finite'),
    ('target_entropy', float('inf'), 'finite'),
    ('target_update_rate', 0.0, 'positive'),
    ('target_update_rate', 1.5, r'in \[0, 1\]'),
    ('max_gradient_norm', 0.0, 'positive'),
    ('num_random_steps', -1, 'at least 0'),
    ('samples_per_insert', float('nan'), 'positive'),
    ('importance_exponent', 2.0, r'in \[0, 1\]'),
  ],
)
def test_refuses(name, value, expected):
  with pytest.raises(ValueError, match=f'{name} must be {expected}'):
    sac.SACConfig(**{name: value})


@pytest.mark.parametrize(
  ('changes', 'expected'),
  [
    (
      {'body': 'simba', 'hidden_sizes': (3, 4)},
      'hidden_sizes must be equal sizes, one for each block',
    ),
    (
      {'critic_body': 'simba', 'critic_hidden_sizes': (3, 4)},
      'critic_hidden_sizes must be equal sizes',
    ),
    (
      {'critic_body': 'normalized_mlp', 'critic_hidden_sizes': ()},
      'critic_hidden_sizes must be not empty',
    ),
    (
      {'num_quantiles': 5, 'num_dropped_quantiles': 5},
      'num_dropped_quantiles must be less than num_quantiles = 5',
    ),
    ({'num_quantiles': 5}, "critics_of_policy must be 'mean' with quantiles"),
    (
      {**sac.PRESETS['tqc'], 'num_target_critics': 2},
      'num_target_critics must be None with quantiles',
    ),
  ],
)
def test_refuses_what_does_not_go_together(changes, expected):
  with pytest.raises(ValueError, match=expected):
    sac.SACConfig(**changes)


def test_accepts_the_ends():
  sac.SACConfig(
    target_update_rate=1.0, temperature_learning_rate=0.0, num_random_steps=0,
    discount=1.0, target_entropy=-3.0, max_gradient_norm=None,
  )  # fmt: skip
