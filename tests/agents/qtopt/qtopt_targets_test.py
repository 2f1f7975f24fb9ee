"""Tests of the Bellman targets of `agents/qtopt/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import qtopt
from repertory.agents.interface import conformance
from repertory.components import types
from support.agents import numpy_qtopt, transition_updates

B, D = transition_updates.B, transition_updates.D
SPEC = transition_updates.CONTINUOUS_SPEC
arrays = transition_updates.arrays
CONFIG = qtopt.QTOptConfig(
  hidden_sizes=(4,), num_samples=7, num_elites=3, initial_stddev=0.6,
  batch_size=B, discount=0.8, learning_rate=0.05, target_update_rate=0.3,
  target_lag=2, min_replay_size=20, samples_per_insert=8.0, jit_compile=False,
  train_buffer_size=4 * B,
)  # fmt: skip
_SHAPE = [CONFIG.num_iterations, B, CONFIG.num_samples, D]


def _draw(number):
  """The noise of a search, and its seed."""
  seed = tf.constant([5, number], tf.int32)
  return tf.random.stateless_normal(_SHAPE, seed), seed


def _fill(update):
  """Assigns different values to the networks of an update."""
  random = np.random.default_rng(0)
  for variables in update.learned.values():
    for variable in variables:
      variable.assign(random.normal(size=variable.shape))


def _follow(updater, update):
  for name, variables in updater.variable_client.items():
    for one, other in zip(variables, update.exports[name], strict=True):
      one.assign(other)


@pytest.mark.parametrize('bounded', [True])
def test_fresh_targets_teach_what_targets_in_the_update_do(bounded):
  """Both are equal to the twin."""
  builder = qtopt.QTOptBuilder(dataclasses.replace(CONFIG, bounded=bounded))
  inside, beside = (
    builder.make_update(builder.make_network(SPEC), SPEC) for _ in range(2)
  )
  updater = builder.make_bellman_updater(SPEC)
  _fill(inside)
  _fill(beside)
  for i in range(3):  # The lagged network is copied once.
    batch = transition_updates.make_continuous_batch(i)
    sample = transition_updates.to_sample(batch)
    noise, seed = _draw(i)
    inside._noise.normals = lambda shape, noise=noise: noise
    expected = inside(sample)
    _follow(updater, beside)
    data, target = updater(sample, seed)
    networks = [
      {v.name: v.numpy().astype(np.float64) for v in beside.exports[name]}
      for name in ('policy', 'lagged')
    ]
    twin = numpy_qtopt.Twin(builder.config, None, *networks)
    twins_targets = twin.targets(batch, noise.numpy())
    np.testing.assert_allclose(target, twins_targets, rtol=1e-4, atol=1e-4)
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
    return qtopt.QTOptBuilder(CONFIG)

  def make_spec(self):
    return SPEC


def test_learner_steps_to_a_step_stay():
  config = dataclasses.replace(
    CONFIG,
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
