"""Tests of `agents/mpo/learning.py` and `agents/mpo/action_kinds.py`."""

import dataclasses

import pytest

from repertory.agents import mpo
from support.agents import numpy_mpo, transition_updates

B, D, N = transition_updates.B, transition_updates.D, 3
TWINS = {
  'continuous': numpy_mpo.GaussianTwin,
  'discrete': numpy_mpo.DiscreteTwin,
}
# No defaults, so that ignored settings are found.
CONFIG = mpo.MPOConfig(
  hidden_sizes=(4, 3),
  batch_size=B,
  num_samples=N,
  discount=0.8,
  num_atoms=4,
  vmin=-2.0,
  vmax=2.5,
  learning_rate=0.05,
  dual_learning_rate=0.1,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  max_gradient_norm=0.9,
  epsilon=0.3,
  epsilon_mean=0.05,
  epsilon_stddev=0.02,
  epsilon_policy=0.04,
  epsilon_penalty=0.01,
  initial_temperature=0.4,
  initial_alpha_mean=0.7,
  initial_alpha_stddev=1.2,
  initial_alpha_policy=0.6,
  initial_stddev=0.5,
  target_update_period=2,
)
CATEGORICAL = {'distribution': 'categorical'}


def make_batches(kind, number):
  batches = []
  for i in range(number):
    batches.append(transition_updates.make_continuous_batch(i, (B, N, D)))
    if kind == 'discrete':
      action = transition_updates.make_discrete_batch(i)['action']
      batches[-1]['action'] = action
  return batches


class TestMPOUpdate:
  @pytest.mark.parametrize(
    ('kind', 'changes', 'jit_compile'),
    [
      pytest.param(
        'continuous', CATEGORICAL, True, id='dmpo_xla', marks=pytest.mark.chaos
      ),
      pytest.param('continuous', {}, None, id='continuous'),
      pytest.param(
        'continuous',
        {
          'epsilon_penalty': None,
          'prioritized': True,
          'max_gradient_norm': None,
        },
        None,
        id='no_penalty_prioritized_unclipped',
      ),
      pytest.param('discrete', {}, None, id='discrete'),
      pytest.param(
        'discrete',
        {**CATEGORICAL, 'prioritized': True},
        None,
        id='discrete_dmpo_prioritized',
      ),
    ],
  )
  def test_equals_the_twin(self, kind, changes, jit_compile):
    config = dataclasses.replace(CONFIG, **changes)
    # Targets are copied once, and used as copies and as what they were.
    twin = TWINS[kind](mpo.MPOBuilder(config))
    twin.check(make_batches(kind, 3), jit_compile)

  @pytest.mark.parametrize('kind', TWINS)
  def test_multipliers_rise_where_bounds_are_exceeded(self, kind):
    changes = dict.fromkeys(
      ['epsilon_mean', 'epsilon_stddev', 'epsilon_policy'], 1e-6
    )
    config = dataclasses.replace(CONFIG, target_update_period=100, **changes)
    update = TWINS[kind](mpo.MPOBuilder(config)).update
    found = [
      update(transition_updates.to_sample(batch)).metrics
      for batch in make_batches(kind, 4)
    ]
    names = [name for name in found[0] if name.startswith('alpha_')]
    assert len(names) == (2 if kind == 'continuous' else 1)
    for name in names:
      assert found[-1][name] > found[1][name]
