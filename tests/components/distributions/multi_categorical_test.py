"""Tests of `MultiCategorical`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import distributions, specs
from repertory.components.runtime import random_streams
from support.agents import numeric_gradients

NUM_ROWS = 20_000
COUNTS = {
  'scalar': 3,
  'alike': [4, 4, 4],
  'unlike': [2, 5, 1, 3],
  'matrix': [[2, 3], [4, 2]],
}


def make(counts, dtype=np.int32, minimum=0):
  counts = np.asarray(counts)
  spec = specs.BoundedArray(counts.shape, dtype, minimum, minimum + counts - 1)
  return spec, distributions.make_distribution(spec)


def counters_of(num_rows):
  random = np.random.default_rng(0)
  return tf.constant(random.integers(2**63, size=num_rows, dtype=np.uint64))


def probabilities(parameters, counts):
  """Returns the values for each integer, in float64."""
  found, place = [], 0
  for count in np.ravel(counts):
    z = np.asarray(parameters, np.float64)[..., place : place + count]
    powers = np.exp(z - z.max(-1, keepdims=True))
    found.append(powers / powers.sum(-1, keepdims=True))
    place += count
  return found


def log_prob(parameters, counts, sample):
  sample = np.reshape(sample, [*np.shape(parameters)[:-1], np.size(counts)])
  return sum(
    np.log(np.take_along_axis(p, sample[..., i, None], -1))[..., 0]
    for i, p in enumerate(probabilities(parameters, counts))
  )


def entropy(parameters, counts):
  return sum(
    -np.sum(p * np.log(p), -1) for p in probabilities(parameters, counts)
  )


def test_by_hand():
  _, distribution = make([2, 3])
  # Probabilities (1/4, 3/4) of the first, (1/4, 1/2, 1/4) of the second.
  parameters = tf.math.log([[1.0, 3.0, 1.0, 2.0, 1.0]])
  found = distribution.log_prob(parameters, tf.constant([[1, 2]]))
  np.testing.assert_allclose(found, [math.log(3 / 4 * 1 / 4)], rtol=1e-6)
  # ¼ ln 4 + ¾ ln 4/3, and ¼ ln 4 + ½ ln 2 + ¼ ln 4 = 3/2 ln 2.
  expected = math.log(4) / 4 + 3 * math.log(4 / 3) / 4 + 1.5 * math.log(2)
  np.testing.assert_allclose(
    distribution.entropy(parameters), [expected], rtol=1e-6
  )
  np.testing.assert_array_equal(distribution.mode(parameters), [[1, 1]])


@pytest.mark.parametrize('counts', COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize('leading', [[5], [3, 5]])
@pytest.mark.parametrize('jit_compile', [False, True])
def test_equals_the_twin(counts, leading, jit_compile):
  random = np.random.default_rng(0)
  spec, distribution = make(counts)
  assert distribution.num_parameters == np.sum(counts)
  parameters = 3 * random.normal(size=[*leading, np.sum(counts)])
  parameters = parameters.astype(np.float32)
  sample = random.integers(0, counts, [*leading, *spec.shape])

  @tf.function(jit_compile=jit_compile, autograph=False)
  def compute(parameters, sample):
    return (
      distribution.log_prob(parameters, sample),
      distribution.entropy(parameters),
    )

  found = compute(tf.constant(parameters), tf.constant(sample, tf.int32))
  for ours, theirs in zip(
    found, (log_prob(parameters, counts, sample), entropy(parameters, counts))
  ):
    assert ours.shape == leading
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('name', ['alike', 'unlike'])
def test_gradients(name):
  counts, random = COUNTS[name], np.random.default_rng(1)
  _, distribution = make(counts)
  arrays = {'parameters': random.normal(size=[2, np.sum(counts)])}
  sample = random.integers(0, counts, [2, len(counts)])
  weights = np.array([0.7, -0.3])

  def function(arrays):
    parameters = arrays['parameters']
    terms = log_prob(parameters, counts, sample) + entropy(parameters, counts)
    return np.sum(weights * terms)

  expected = numeric_gradients.gradients(function, arrays)['parameters']
  parameters = tf.constant(arrays['parameters'], tf.float32)
  with tf.GradientTape() as tape:
    tape.watch(parameters)
    terms = distribution.log_prob(parameters, tf.constant(sample, tf.int32))
    terms += distribution.entropy(parameters)
    loss = tf.reduce_sum(tf.constant(weights, tf.float32) * terms)
  np.testing.assert_allclose(
    tape.gradient(loss, parameters), expected, rtol=1e-3, atol=1e-5
  )


def test_certain_policy_stays_finite():
  _, distribution = make([2, 3])
  parameters = tf.constant([[1000.0, -1000.0, 0.0, 1000.0, -1000.0]])
  with tf.GradientTape() as tape:
    tape.watch(parameters)
    found = distribution.entropy(parameters)
  np.testing.assert_allclose(found, [0.0], atol=1e-6)
  assert np.all(np.isfinite(tape.gradient(found, parameters)))


@pytest.mark.parametrize('jit_compile', [False, True])
def test_sampling_frequencies(jit_compile):
  counts = [2, 3]
  _, distribution = make(counts)
  row = np.array([0.5, -0.5, 0.0, 1.0, -1.0], np.float32)
  sample = tf.function(
    distribution.sample, jit_compile=jit_compile, autograph=False
  )
  samples, _ = sample(tf.tile(row[None], [NUM_ROWS, 1]), counters_of(NUM_ROWS))
  first, second = probabilities(row, counts)
  for index in np.ndindex(*counts):
    # Of both together: the numbers are independent.
    p = first[index[0]] * second[index[1]]
    count = np.sum(np.all(samples.numpy() == index, axis=-1))
    deviation = math.sqrt(NUM_ROWS * p * (1 - p))
    assert abs(count - NUM_ROWS * p) < 4.5 * deviation, index


@pytest.mark.parametrize('name', ['alike', 'unlike'])
def test_never_draws_what_is_no_choice(monkeypatch, name):
  largest = 1 - 2.0**-24
  monkeypatch.setattr(
    random_streams,
    'next_uniform_vectors',
    lambda counters, size: (tf.fill([1000, size], largest), counters),
  )
  random = np.random.default_rng(0)
  counts = COUNTS[name]
  _, distribution = make(counts)
  parameters = tf.constant(
    random.normal(size=[1000, np.sum(counts)]), tf.float32
  )
  # The premise: probabilities do not add up to 1, but to less.
  assert np.any(
    np.cumsum(tf.nn.softmax(parameters), axis=-1, dtype=np.float32)[:, -1]
    <= largest
  )
  samples, _ = distribution.sample(parameters, counters_of(1000))
  assert np.all(samples.numpy() < counts)


@pytest.mark.parametrize('name', COUNTS)
def test_rows_are_independent_of_the_batch(name):
  random = np.random.default_rng(0)
  spec, distribution = make(COUNTS[name])
  size = distribution.num_parameters
  parameters = tf.constant(random.normal(size=[8, size]), tf.float32)
  counters = counters_of(8)
  together, after = distribution.sample(parameters, counters)
  assert together.shape == [8, *spec.shape]
  assert np.all(after.numpy() != counters.numpy())
  for rows in ([0], [6, 1, 3]):
    alone, alone_after = distribution.sample(
      tf.gather(parameters, rows), tf.gather(counters, rows)
    )
    np.testing.assert_array_equal(alone, together.numpy()[rows])
    np.testing.assert_array_equal(alone_after, after.numpy()[rows])


@pytest.mark.parametrize(
  ('dtype', 'minimum', 'maximum'),
  [
    (np.int8, 0, 1),
    (np.int8, -128, 127),
    (np.uint8, [0, 3], [255, 3]),
    (np.int16, -5, -2),
    (np.int32, [5, -1], [7, 1]),
    (np.int64, 2**40, 2**40 + 2),
    (np.uint64, 2**63, 2**63 + 2),
  ],
)
@pytest.mark.parametrize('jit_compile', [False, True])
def test_to_action(dtype, minimum, maximum, jit_compile):
  spec = specs.BoundedArray((2,), dtype, minimum, maximum)
  distribution = distributions.make_distribution(spec)
  counts = [
    int(b) - int(a) + 1
    for a, b in zip(
      np.broadcast_to(spec.minimum, 2), np.broadcast_to(spec.maximum, 2)
    )
  ]
  samples = np.stack([[0, 0], np.array(counts) - 1]).astype(np.int32)
  to_action = tf.function(
    distribution.to_action, jit_compile=jit_compile, autograph=False
  )
  action = to_action(tf.constant(samples)).numpy()
  assert action.dtype == dtype
  expected = np.broadcast_to(
    np.stack(
      [np.broadcast_to(spec.minimum, 2), np.broadcast_to(spec.maximum, 2)]
    ),
    [2, 2],
  )
  np.testing.assert_array_equal(action, expected)


def test_refuses_too_many_choices():
  spec = specs.BoundedArray(
    (2,), np.int64, np.iinfo(np.int64).min, [0, np.iinfo(np.int64).max]
  )
  with pytest.raises(
    ValueError, match=r'at most 65,536 values, got 18,446,744'
  ):
    distributions.make_distribution(spec)
