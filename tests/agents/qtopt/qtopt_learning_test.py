"""Tests of `agents/qtopt/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import qtopt
from repertory.agents.interface import builder
from repertory.agents.qtopt import learning, networks
from repertory.components.actions import action_scaling
from support.agents import numpy_qtopt, transition_updates

arrays = transition_updates.arrays
make_batch = transition_updates.make_continuous_batch
to_sample = transition_updates.to_sample
B, D = transition_updates.B, transition_updates.D
SPEC = transition_updates.CONTINUOUS_SPEC
CONFIG = qtopt.QTOptConfig(
  hidden_sizes=(4,),
  num_samples=7,
  num_elites=3,
  initial_stddev=0.6,
  batch_size=B,
  discount=0.8,
  learning_rate=0.05,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  target_update_rate=0.3,
  target_lag=2,
)


def make(config, seed=0):
  """Returns online, average and lagged network, and update."""
  tf.random.set_seed(seed)
  made = online, average, lagged = tuple(
    networks.make_network(SPEC, config) for _ in range(3)
  )
  scaling = action_scaling.ActionScaling(SPEC.actions)
  update = learning.QTOptUpdate(online, average, lagged, scaling, config)
  # After the constructor's copies, so that they differ from the start.
  random = np.random.default_rng(seed)
  for network in made:
    for variable in network.variables:
      variable.assign(random.normal(size=variable.shape))
  return *made, update


class TestQTOptUpdate:
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
  def test_equals_the_twin(self, changes, jit_compile):
    config = dataclasses.replace(CONFIG, **changes)
    *made, update = make(config)
    twin = numpy_qtopt.Twin(config, *map(arrays, made))
    shape = [config.num_iterations, B, config.num_samples, D]
    noise = tf.Variable(tf.zeros(shape))

    def normals(asked):
      assert [asked[0], *asked[2:]] == [shape[0], *shape[2:]]
      return noise.read_value()

    update._noise.normals = normals
    call = tf.function(update, autograph=False, jit_compile=jit_compile)
    for i in range(3):
      batch = make_batch(i)
      numbers = np.random.default_rng(i).normal(size=shape)
      noise.assign(numbers)
      result = call(to_sample(batch))
      metrics, sizes = twin.step(batch, numbers)
      priorities = sizes if config.prioritized else None
      transition_updates.assert_step(result, metrics, priorities)
      for network, expected in zip(
        made, (twin.network, twin.average, twin.lagged)
      ):
        transition_updates.assert_all_close(arrays(network), expected)

  def test_the_average_acts(self):
    _, average, _, update = make(CONFIG)
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
    network, builder.Acting(SPEC, 1, seed=0, evaluation=True)
  )
  output = policy.step(tf.zeros([1, 3]), policy.initial_state([0]))
  np.testing.assert_allclose(output.action, [[3, 2]], atol=0.1)
