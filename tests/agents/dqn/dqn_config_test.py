"""Tests of `agents/dqn/config.py`."""

import dataclasses

import pytest

from repertory.agents import dqn
from repertory.agents.replay import experience_replay

_NAN = float('nan')

# By setting: invalid values, and the expected message.
REFUSED = {
  'n_step': ([0, -1], 'at least 1'),
  'batch_size': ([0, -1], 'at least 1'),
  'target_update_period': ([0, -1], 'at least 1'),
  'max_replay_size': ([0, -1], 'at least 1'),
  'num_sgd_steps_per_step': ([0, -1], 'at least 1'),
  'min_replay_size': ([0, -1], 'at least 1'),
  'importance_anneal_learner_steps': ([0, -1], 'at least 1'),
  'variable_update_period': ([0, -1], 'at least 1'),
  'learning_rate': ([0, -1e-3, _NAN], 'positive'),
  'adam_epsilon': ([0, -1e-3, _NAN], 'positive'),
  'max_gradient_norm': ([0, -1, _NAN], 'positive'),
  'huber_threshold': ([0, -1, _NAN], 'positive'),
  'max_abs_reward': ([0, -1, _NAN], 'positive'),
  'min_priority': ([0, -1, _NAN], 'positive'),
  'samples_per_insert': ([0, -1, _NAN], 'positive'),
  'discount': ([-0.1, 1.1, _NAN], r'in \[0, 1\]'),
  'importance_exponent': ([-0.1, 1.1, _NAN], r'in \[0, 1\]'),
  'evaluation_epsilon': ([-0.1, 1.1, _NAN], r'in \[0, 1\]'),
  'priority_exponent': ([-0.1, _NAN], 'at least 0'),
  'epsilon_exponent': ([-0.1, _NAN], 'at least 0'),
  'prefetch': ([-1], 'at least 0'),
  'epsilon_anneal_steps': ([-1], 'at least 0'),
  'epsilon_base': (
    [0, -0.1, 1.1, _NAN],
    r'in \(0, 1\], or 0 with noisy networks',
  ),
  'distribution': (
    ['c51', ''],
    r"one of \['none', 'categorical', 'quantile', .*\]",
  ),
  'num_atoms': ([1, 0], 'at least 2'),
  'num_quantiles': ([0, -1], 'at least 1'),
  'num_taus': ([0, -1], 'at least 1'),
  'num_target_taus': ([0, -1], 'at least 1'),
  'num_policy_taus': ([0, -1], 'at least 1'),
  'vmin': ([float('inf'), _NAN], 'finite in single precision'),
  'vmax': ([-100.0, -101], r'above vmin = -100\.0, by a finite number'),
  'conservative_weight': ([-0.1, _NAN], 'at least 0'),
  'margin_weight': ([-0.1, _NAN], 'at least 0'),
  'margin': ([-0.1, _NAN], 'at least 0'),
  'noisy_sigma': ([0, -1, _NAN], 'positive'),
  'munchausen_alpha': ([-0.1, 1.1, _NAN], r'in \[0, 1\]'),
  'munchausen_temperature': ([0, -1, _NAN], 'positive'),
  'munchausen_clip': ([0.1], 'at most 0'),
  'hidden_sizes': ([(0,), (16, -1)], 'a tuple of integers of at least 1'),
  'image_torso': (['Nature', ''], r"one of \['auto', 'nature', .*\]"),
}
# Ends of the ranges, which are allowed.
ALLOWED = {
  'n_step': 1,
  'batch_size': 1,
  'target_update_period': 1,
  'max_replay_size': 1,
  'num_sgd_steps_per_step': 1,
  'min_replay_size': 1,
  'variable_update_period': 1,
  'discount': 1,
  'importance_exponent': 1,
  'evaluation_epsilon': 1,
  'priority_exponent': 0,
  'epsilon_exponent': 0,
  'prefetch': 0,
  'epsilon_anneal_steps': 0,
  'epsilon_base': 1,
  'num_atoms': 2,
  'num_quantiles': 1,
  'num_taus': 1,
  'num_target_taus': 1,
  'num_policy_taus': 1,
  'munchausen_alpha': 1,
  'munchausen_clip': 0,
  'hidden_sizes': (),
  'image_torso': 'residual',
}
# Booleans; and the error buffer, which is checked with the tables.
UNCHECKED = [
  'dueling', 'double', 'noisy', 'munchausen', 'prioritized', 'jit_compile',
  'error_buffer',
]  # fmt: skip


class TestDQNConfig:
  @pytest.mark.parametrize(
    ('name', 'value', 'expected'),
    [
      (name, value, expected)
      for name, (values, expected) in REFUSED.items()
      for value in values
    ],
  )
  def test_refuses(self, name, value, expected):
    with pytest.raises(
      ValueError, match=f'^{name} must be {expected}, got '
    ) as caught:
      dqn.DQNConfig(**{name: value})
    assert str(value) in str(caught.value)

  def test_every_setting_is_checked(self):
    names = [field.name for field in dataclasses.fields(dqn.DQNConfig)]
    assert sorted(names) == sorted([*REFUSED, *UNCHECKED])

  @pytest.mark.parametrize(('name', 'value'), ALLOWED.items())
  def test_takes_the_ends_of_ranges(self, name, value):
    assert getattr(dqn.DQNConfig(**{name: value}), name) == value

  def test_smallest_of_the_other_ranges(self):
    dqn.DQNConfig(discount=0, importance_exponent=0, evaluation_epsilon=0)

  def test_noise_may_explore_alone(self):
    dqn.DQNConfig(noisy=True, epsilon_base=0)

  def test_is_frozen(self):
    with pytest.raises(dataclasses.FrozenInstanceError):
      dqn.DQNConfig().n_step = 2


class TestErrorBuffer:
  @pytest.mark.parametrize(
    ('changes', 'environments', 'expected'),
    [
      # A tenth of the 2 · 1000 samples due when learning starts. Twice a
      # learner step and the end of an episode are 2 (10 + 2 · 1 · (3 + 1)) =
      # 36.
      pytest.param({}, 1, 200, id='share'),
      # 2 (10 + 2 · 20 · 3).
      pytest.param({}, 20, 260, id='twice'),
      # 2 (10 + 2 · 20 · 9).
      pytest.param({'n_step': 9}, 20, 740, id='more_steps'),
      pytest.param({'error_buffer': 123.0}, 20, 123, id='stated'),
    ],
  )
  def test_by_hand(self, changes, environments, expected):
    config = dqn.DQNConfig(
      batch_size=10, samples_per_insert=2.0, min_replay_size=1000, n_step=3
    )
    config = dataclasses.replace(config, **changes)
    items = environments * config.n_step
    buffer = experience_replay.error_buffer(config, items)
    assert buffer == pytest.approx(expected, abs=5e-8)

  def test_broken_counts_are_refused(self):
    with pytest.raises(ValueError, match='n_step must be an integer, got 2'):
      dqn.DQNConfig(n_step=2.5)
