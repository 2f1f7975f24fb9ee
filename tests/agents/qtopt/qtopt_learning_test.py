"""Tests of `agents/qtopt/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.agents import qtopt
from repertory.agents.interface import builder as builder_lib
from repertory.agents.interface import conformance
from repertory.components import types
from support.agents import acting_policies, numpy_qtopt, transition_updates

arrays = transition_updates.arrays
B, D = transition_updates.B, transition_updates.D
SPEC = transition_updates.CONTINUOUS_SPEC
CONFIG = qtopt.QTOptConfig(
  hidden_sizes=(4,), num_samples=7, num_elites=3, initial_stddev=0.6,
  batch_size=B, discount=0.8, learning_rate=0.05, target_update_rate=0.3,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  target_lag=2, min_replay_size=20, samples_per_insert=8.0, jit_compile=False,
)  # fmt: skip
WITH_UPDATERS = dataclasses.replace(CONFIG, train_buffer_size=4 * B)


def make(config):
  """Returns an update, and its online, average and lagged network."""
  builder = qtopt.QTOptBuilder(config)
  update = builder.make_update(builder.make_network(SPEC), SPEC)
  networks = update._network, update._targets.average, update._targets.lagged
  for seed, network in enumerate(networks):
    acting_policies.fill(network.variables, seed)
  return update, networks


@pytest.mark.parametrize(
  ('changes', 'jit_compile'),
  [
    pytest.param({}, None, id='default'),
    pytest.param({'bounded': True}, True, id='bounded_xla'),
    pytest.param(
      {'prioritized': True, 'num_iterations': 3, 'max_gradient_norm': 0.3},
      None,
      id='prioritized',
    ),
  ],
)
def test_equals_the_twin(changes, jit_compile):
  config = dataclasses.replace(CONFIG, **changes)
  update, networks = make(config)
  twin = numpy_qtopt.Twin(config, *map(arrays, networks))
  shape = config.num_iterations, B, config.num_samples, D
  batches = [
    transition_updates.make_continuous_batch(i, shape) for i in range(3)
  ]
  transition_updates.check_steps(
    update,
    twin.step,
    batches,
    lambda: zip(networks, (twin.network, twin.average, twin.lagged)),
    jit_compile,
  )


def test_the_average_acts():
  update, (_, average, _) = make(CONFIG)
  exported = update.exports['policy']
  assert [v.ref() for v in exported] == [v.ref() for v in average.variables]


def test_policy_takes_the_action_of_the_largest_value():
  # With a layer of no size the Q-function is linear in the action.
  agent = qtopt.QTOptBuilder(qtopt.QTOptConfig(hidden_sizes=()))
  network = agent.make_network(SPEC)
  for variable in network.variables:
    slopes = [[0.0], [0.0], [0.0], [1.0], [-1.0]]
    variable.assign(slopes if len(variable.shape) == 2 else [0.0])
  policy = agent.make_policy(
    network, builder_lib.Acting(SPEC, 1, seed=0, evaluation=True)
  )
  output = policy.step(tf.zeros([1, 3]), policy.initial_state([0]))
  np.testing.assert_allclose(output.action, [[3, 2]], atol=0.1)


def test_fresh_targets_teach_what_targets_in_the_update_do():
  """Both are equal to the twin."""
  config = dataclasses.replace(WITH_UPDATERS, bounded=True)
  (inside, _), (beside, networks) = make(config), make(config)
  updater = qtopt.QTOptBuilder(config).make_bellman_updater(SPEC)
  shape = config.num_iterations, B, config.num_samples, D
  for i in range(3):  # The lagged network is copied once.
    batch = transition_updates.make_continuous_batch(i)
    sample = transition_updates.to_sample(batch)
    seed = tf.constant([5, i], tf.int32)
    noise = tf.random.stateless_normal(shape, seed)
    inside._noise.normals = lambda shape, noise=noise: noise
    expected = inside(sample)
    for name, variables in updater.variable_client.items():
      for one, other in zip(variables, beside.exports[name], strict=True):
        one.assign(other)
    data, target = updater(sample, seed)
    twin = numpy_qtopt.Twin(config, None, *map(arrays, networks[1:]))
    expected_target = twin.targets(batch, noise.numpy())
    np.testing.assert_allclose(target, expected_target, rtol=1e-4, atol=1e-4)
    found = beside(
      sample._replace(data=types.SampleWithTargets(data, target, ()))
    )
    for name, value in expected.metrics.items():
      assert value == found.metrics[name], name
    for one, other in zip(
      inside.trainable_variables, beside.trainable_variables, strict=True
    ):
      np.testing.assert_array_equal(one, other)


class TestBuilder(conformance.BuilderConformance):
  def make_builder(self):
    return qtopt.QTOptBuilder(WITH_UPDATERS)

  def make_spec(self):
    return SPEC

  def check_update(self, builder, network, sample):
    with_targets = builder.experience(SPEC, 2).with_targets
    updater = builder.make_bellman_updater(SPEC)
    exports = builder.make_update(builder.make_network(SPEC), SPEC).exports
    for name, variables in updater.variable_client.items():
      found = [(v.name, v.shape) for v in variables]
      assert found == [(v.name, v.shape) for v in exports[name]]
    parts = updater(sample, tf.constant([0, 0]))
    data = types.SampleWithTargets(*parts, tf.zeros([B], tf.int64))
    expected = with_targets.table.signature
    tree.assert_same_structure(data, expected)
    for leaf, spec in zip(tree.flatten(data), tree.flatten(expected)):
      assert (leaf.shape[1:], leaf.dtype) == (spec.shape, spec.dtype)
    rows = tf.range(with_targets.batch_size) % B
    sample = tree.map_structure(
      lambda x: tf.gather(x, rows), sample._replace(data=data)
    )
    super().check_update(builder, network, sample)


def test_learner_steps_to_a_step_stay():
  config = dataclasses.replace(
    WITH_UPDATERS,
    samples_per_target=4.0,
    num_sgd_steps_per_step=2,
    train_buffer_size=8 * B,
  )
  experience = qtopt.QTOptBuilder(config).experience(SPEC, 1)
  learned = experience.learned
  assert (experience.batch_size, learned.batch_size) == (B, 2 * B)
  assert experience.table.rate_limit.samples_per_insert == 8.0 / 4
  assert learned.table.rate_limit.samples_per_insert == 4.0
  # Of 60 items beyond the first 20, 120 are drawn, in 20 batches of 6. Of these
  # targets the first 12 are waited for, and then 108 are drawn four times: 36
  # twelves.
  assert experience.updates_due(80) == 36
  without = dataclasses.replace(
    config, train_buffer_size=None, samples_per_target=1.0
  )
  # What is waited for apart, it is as without: 60 × 8 / 12.
  found = qtopt.QTOptBuilder(without).experience(SPEC, 1).updates_due(80)
  assert found == 40
