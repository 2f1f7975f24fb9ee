"""Tests of `components/networks/normalization.py`."""

import numpy as np
import sonnet as snt
import tensorflow as tf

from repertory.components import networks, specs

FLOATS = specs.Array((3,), np.float32)


def batch(values):
  """Numbers `[N]` as observations `[1, N, 1]`."""
  return tf.constant(np.asarray(values, np.float32)[None, :, None])


def make(spec=FLOATS, **settings):
  return networks.ObservationNormalizer(spec, **settings)


def test_gives_mean_0_and_deviation_1_of_all_in_the_mask():
  random = np.random.default_rng(0)
  normalizer = make()
  update = tf.function(normalizer.update, jit_compile=True, autograph=False)
  seen = []
  for _ in range(4):
    # A batch differs from the next in mean, deviation and size.
    size = [5, 4, 3]
    x = random.normal(random.normal(size=3) * 9, random.uniform(1, 4), size)
    mask = random.uniform(size=[5, 4]) < random.uniform(0.3, 0.9)
    seen.append(x[mask])
    x[~mask] = np.nan
    update(tf.constant(x, tf.float32), tf.constant(mask))
  seen = np.concatenate(seen)
  expected = (seen - seen.mean(axis=0)) / seen.std(axis=0)
  actual = normalizer(tf.constant(seen, tf.float32))
  np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_of_large_numbers_that_hardly_differ():
  normalizer = make(specs.Array((1,), np.int32))
  values = 10**9 + np.arange(10, dtype=np.int32)  # Deviation √(99 / 12).
  all_of = tf.ones([1, 10], tf.bool)
  normalizer.update(tf.constant(values[None, :, None]), all_of)
  np.testing.assert_allclose(
    normalizer(tf.constant(values[:, None]))[:, 0],
    (np.arange(10) - 4.5) / np.sqrt(99 / 12),
    rtol=1e-6,
  )


def test_counts_on_where_single_precision_would_stop():
  # After 2²⁵ + 1 numbers another one must still count.
  normalizer = make(specs.Array((1,), np.float32))
  count, mean, variance = normalizer.variables
  for variable, value in ((count, 2.0**25 + 1), (mean, 0), (variance, 1)):
    variable.assign(tf.fill(variable.shape, tf.constant(value, tf.float64)))
  normalizer.update(batch([2.0**20]), tf.ones([1, 1], tf.bool))
  assert count.numpy() == 2.0**25 + 2
  np.testing.assert_allclose(mean, [2.0**20 / (2.0**25 + 2)], rtol=1e-12)


def test_an_empty_batch_changes_nothing():
  for before in ([], [3.0, 4.0]):
    normalizer = make(specs.Array((1,), np.float32))
    assert not normalizer.is_initialized
    assert not any(v.trainable for v in normalizer.variables)
    if before:
      normalizer.update(batch(before), tf.ones([1, 2], tf.bool))
    expected = [v.numpy() for v in normalizer.variables]
    normalizer.update(batch([9.0]), tf.zeros([1, 1], tf.bool))
    for variable, value in zip(normalizer.variables, expected, strict=True):
      np.testing.assert_array_equal(variable, value)
    assert normalizer.is_initialized == bool(before)


def test_clips():
  normalizer = make(max_abs_value=2.0)
  x = tf.constant([[-9.0, 1.5, 9.0]])
  np.testing.assert_allclose(normalizer(x), [[-2, 1.5, 2]], rtol=1e-6)


def test_what_is_touched_follows_from_the_spec():
  spec = {
    'image': specs.Array((2, 2, 1), np.uint8),
    'bytes': specs.Array((2,), np.uint8),
    'matrix': specs.Array((2, 2), np.int64),
    'number': specs.BoundedArray((), np.float32, 0, 9),
    'choice': specs.DiscreteArray(5),
    'flag': specs.Array((), np.bool_),
  }
  random = np.random.default_rng(0)
  x = {
    name: tf.constant(
      random.integers(2, size=[6, 4, *leaf.shape]).astype(leaf.dtype)
    )
    for name, leaf in spec.items()
  }
  normalizer = make(spec)
  normalizer.update(x, tf.ones([6, 4], tf.bool))
  rows = {name: leaf[0] for name, leaf in x.items()}
  normalized = normalizer(rows)
  for name in ('image', 'choice', 'flag'):
    assert normalized[name] is rows[name]
  for name in ('bytes', 'matrix', 'number'):
    assert normalized[name].dtype == tf.float32
    everything = x[name].numpy().astype(np.float64)
    mean, deviation = everything.mean((0, 1)), everything.std((0, 1))
    expected = (rows[name].numpy() - mean) / deviation
    np.testing.assert_allclose(normalized[name], expected, rtol=1e-4)


def test_leaves_the_nest_of_the_caller_as_it_is():
  leaf = specs.Array((2,), np.float32)
  spec = {'a': [leaf, {'b': [leaf]}]}
  normalizer = networks.ObservationNormalizer(spec)
  networks.ObservationTorso(spec, (3,))
  zeros = specs.zeros(spec, 4)
  for nest in (spec, normalizer(zeros)):
    assert type(nest) is dict
    assert type(nest['a']) is list
    assert type(nest['a'][1]) is dict
    assert type(nest['a'][1]['b']) is list


class _Identity(snt.Module):
  """Network that returns its observations."""

  def __call__(self, observation):
    return observation

  step = unroll = __call__


def test_networks_get_normalized_observations_in_every_call():
  network = networks.NormalizedNetwork(_Identity(), make())
  network.normalizer.update(batch([2.0, 4.0]) * [1, 2, 3], tf.ones([1, 2]) > 0)
  for function in (network, network.step, network.unroll):
    # Means are 3, 6 and 9, deviations 1, 2 and 3.
    np.testing.assert_allclose(
      function(tf.constant([[4.0, 6, 6]])), [[1, 0, -1]]
    )
