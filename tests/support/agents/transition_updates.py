"""Shared parts of tests of updates on transitions."""

import numpy as np
import tensorflow as tf
from acme import specs

from repertory.components import types

# Items of a batch, and entries of an action.
B, D = 6, 2
_FLOAT = specs.Array((), np.float32)
CONTINUOUS_SPEC = specs.EnvironmentSpec(
  observations=specs.Array((3,), np.float32),
  actions=specs.BoundedArray((D,), np.float32, [-1, 2], [3, 4]),
  rewards=_FLOAT,
  discounts=_FLOAT,
)
DISCRETE_SPEC = CONTINUOUS_SPEC._replace(actions=specs.DiscreteArray(3))


def make_continuous_batch(seed, noise=(2, B, D)):
  """Makes a batch of actions of `CONTINUOUS_SPEC`, with some terminations.

  It contains Gaussian noise of a shape, for updates that draw it.
  """
  random = np.random.default_rng(seed)
  return {
    'observation': random.normal(size=(B, 3)),
    'action': random.uniform([-1, 2], [3, 4], (B, D)),
    'reward': random.normal(size=B),
    'discount': random.choice([0.0, 0.5, 1.0], B),
    'next_observation': random.normal(size=(B, 3)),
    'probability': random.uniform(0.01, 0.2, B),
    'table_size': np.full(B, 50),
    'noise': random.normal(size=noise),
  }


def make_discrete_batch(seed):
  """Makes a batch of actions of `DISCRETE_SPEC`, with some terminations."""
  action = np.random.default_rng(seed).integers(3, size=B)
  return {**make_continuous_batch(seed), 'action': action}


def scaled(batch):
  """Scales actions of `CONTINUOUS_SPEC` to [−1, 1]."""
  return (batch['action'] - [1, 3]) / [2, 1]


def to_sample(batch):
  """Converts a batch to a sample for an update."""
  dtypes = dict.fromkeys(types.Transition._fields[:-1], tf.float32)
  if np.issubdtype(batch['action'].dtype, np.integer):
    dtypes['action'] = tf.int32
  return types.Sample(
    data=types.Transition(
      **{name: tf.constant(batch[name], d) for name, d in dtypes.items()}
    ),
    keys=tf.range(B),
    probabilities=tf.constant(batch['probability'], tf.float64),
    table_sizes=tf.constant(batch['table_size'], tf.int64),
    is_demonstration=batch.get('is_demonstration', ()),
  )


def arrays(module):
  """Returns a module's variables by name, float64."""
  return {v.name: v.numpy().astype(np.float64) for v in module.variables}


def assert_all_close(found, expected, tolerance=1e-4):
  """Checks that two dictionaries of numbers or arrays are close."""
  assert set(found) == set(expected), (set(found), set(expected))
  for name, value in expected.items():
    np.testing.assert_allclose(
      found[name], value, rtol=1e-3, atol=tolerance, err_msg=name
    )


def assert_step(result, metrics, priorities):
  """Checks the metrics and priorities of an update."""
  assert_all_close(result.metrics, metrics)
  if priorities is None:
    assert result.priorities is None, result.priorities
  else:
    np.testing.assert_allclose(
      result.priorities, priorities, rtol=1e-3, atol=1e-4
    )


def check_steps(update, step, batches, modules, jit_compile=None):
  """Checks an update against its twin after each batch.

  Args:
    update: Update, whose Gaussian noise is replaced by that of the batch.
    step: Updates the twin with a batch; returns metrics and priorities.
    batches: Batches, all alike.
    modules: Returns pairs of a module and the twin's arrays.
    jit_compile: Whether to compile with XLA.
  """
  noise = tf.Variable(batches[0]['noise'], dtype=tf.float32)
  if getattr(update, '_noise', None) is not None:
    update._noise.normals = lambda shape: noise.read_value()
  call = tf.function(update, autograph=False, jit_compile=jit_compile)
  for batch in batches:
    noise.assign(batch['noise'])
    result = call(to_sample(batch))
    metrics, priorities = step(batch)
    assert_step(
      result, metrics, priorities if update._config.prioritized else None
    )
    for module, expected in modules():
      assert_all_close(arrays(module), expected, tolerance=3e-4)
