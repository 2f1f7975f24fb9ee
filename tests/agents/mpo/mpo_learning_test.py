"""Tests of `agents/mpo/learning.py` and `agents/mpo/action_kinds.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import mpo
from repertory.agents.mpo import action_kinds, learning
from repertory.components.actions import action_scaling, discrete_actions
from support.agents import numpy_mpo, policy_and_critic_twin, transition_updates

to_sample = transition_updates.to_sample
B, D, N = transition_updates.B, transition_updates.D, 3
SPECS = {
  'continuous': transition_updates.CONTINUOUS_SPEC,
  'discrete': transition_updates.DISCRETE_SPEC,
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


def make_batch(seed, kind='continuous'):
  random = np.random.default_rng(seed + 100)
  batch = transition_updates.make_continuous_batch(seed)
  batch['noise'] = random.normal(size=(B, N, D))
  if kind == 'discrete':
    batch['action'] = random.integers(0, 3, B)
  return batch


def make(config, kind='continuous', seed=0):
  """Returns online networks, target networks and update."""
  spec = SPECS[kind]
  builder = mpo.MPOBuilder(config)
  online, target = policy_and_critic_twin.make_networks(
    lambda: builder.make_network(spec),
    lambda: builder.make_critic(spec),
    seed,
  )
  if kind == 'continuous':
    scaling = action_scaling.ActionScaling(spec.actions)
    found = action_kinds.Gaussians(scaling, config)
  else:
    actions = discrete_actions.DiscreteActions(spec.actions)
    found = action_kinds.Categoricals(actions, config)
  return online, target, learning.MPOUpdate(online, target, found, config)


def duals_of(update):
  variables = [v for dual in update._duals for v in dual.variables]
  return {v.name: v.numpy().astype(np.float64) for v in variables}


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
    online, target, update = make(config, kind)
    twin_class = {
      'continuous': numpy_mpo.GaussianTwin,
      'discrete': numpy_mpo.CategoricalTwin,
    }[kind]
    twin = twin_class(config, online, target, duals_of(update))
    noise = tf.Variable(tf.zeros([B, N, D]))
    update._noise.normals = lambda shape: noise.read_value()
    call = tf.function(update, autograph=False, jit_compile=jit_compile)
    # Targets are copied once, and used as copies and as what they were.
    for i in range(3):
      batch = make_batch(i, kind)
      noise.assign(batch['noise'])
      result = call(to_sample(batch))
      metrics, sizes = twin.step(batch)
      priorities = sizes if config.prioritized else None
      transition_updates.assert_step(result, metrics, priorities)
      twin.assert_like(online, target)
      transition_updates.assert_all_close(duals_of(update), twin.duals)

  @pytest.mark.parametrize('kind', SPECS)
  def test_multipliers_rise_where_bounds_are_exceeded(self, kind):
    changes = dict.fromkeys(
      ['epsilon_mean', 'epsilon_stddev', 'epsilon_policy'], 1e-6
    )
    *_, update = make(
      dataclasses.replace(CONFIG, target_update_period=100, **changes),
      kind,
    )
    found = [update(to_sample(make_batch(i, kind))).metrics for i in range(4)]
    names = [name for name in found[0] if name.startswith('alpha_')]
    assert len(names) == (2 if kind == 'continuous' else 1)
    for name in names:
      assert found[-1][name] > found[1][name]
