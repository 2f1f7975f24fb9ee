"""Tests of categorical and Gaussian distributions."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import distributions, specs

NUM_ROWS = 20_000


def counters_of(num_rows, seed=0):
  """Random streams of rows, which may overlap here."""
  random = np.random.default_rng(seed)
  return tf.constant(random.integers(2**63, size=num_rows, dtype=np.uint64))


def normal(shape, seed=0, scale=1.0):
  random = np.random.default_rng(seed)
  return tf.constant(scale * random.normal(size=shape), tf.float32)


def make_gaussian(shape=(2,)):
  spec = specs.BoundedArray(shape, np.float32, -1, 1)
  return distributions.DiagonalGaussian(spec)


def make_categorical(num_values=4, dtype=np.int32):
  spec = specs.DiscreteArray(num_values, dtype)
  return distributions.Categorical(spec)


def softmax(logits):
  powers = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
  return powers / powers.sum(axis=-1, keepdims=True)


def scale_of(unscaled):
  """softplus(u + softplus⁻¹(½)) + 10⁻³, in float64."""
  shift = math.log(math.exp(0.5) - 1)
  return np.log1p(np.exp(np.asarray(unscaled, np.float64) + shift)) + 1e-3


def gaussian_log_prob(mean, scale, x):
  """The sum of the densities' logarithms, in float64."""
  z = (np.asarray(x, np.float64) - mean) / scale
  return np.sum(-(z**2) / 2 - np.log(scale * math.sqrt(2 * math.pi)), axis=-1)


class TestCategorical:
  def test_log_prob_and_entropy(self):
    leading = [3, 5]
    logits = normal([*leading, 4], scale=3.0)
    sample = np.random.default_rng(1).integers(4, size=leading)
    distribution = make_categorical()
    p = softmax(logits.numpy().astype(np.float64))
    chosen = np.take_along_axis(p, np.asarray(sample)[..., None], axis=-1)
    found = distribution.log_prob(logits, tf.constant(sample, tf.int32))
    assert found.shape == leading
    np.testing.assert_allclose(found, np.log(chosen[..., 0]), rtol=1e-4)
    entropy = distribution.entropy(logits)
    assert entropy.shape == leading
    np.testing.assert_allclose(
      entropy, -np.sum(p * np.log(p), axis=-1), rtol=1e-4
    )

  def test_certain_policy_has_finite_entropy_and_gradient(self):
    logits = tf.constant([[1000.0, 0.0, -1000.0]])
    with tf.GradientTape() as tape:
      tape.watch(logits)
      entropy = make_categorical(3).entropy(logits)
    np.testing.assert_allclose(entropy, [0.0], atol=1e-6)
    assert np.all(np.isfinite(tape.gradient(entropy, logits)))

  def test_sampling_frequencies(self):
    row = [0.3, -1.0, 2.0, 0.0]
    distribution = make_categorical()
    sample = tf.function(distribution.sample, jit_compile=True, autograph=False)
    samples, _ = sample(tf.constant([row] * NUM_ROWS), counters_of(NUM_ROWS))
    assert samples.dtype == tf.int32
    for action, p in enumerate(softmax(np.array(row))):
      count = np.count_nonzero(samples == action)
      deviation = math.sqrt(NUM_ROWS * p * (1 - p))
      assert abs(count - NUM_ROWS * p) < 4.5 * deviation, action

  def test_to_action_has_the_dtype(self):
    action = make_categorical(4, np.uint8).to_action(tf.constant([3, 0]))
    assert action.dtype == tf.uint8
    np.testing.assert_array_equal(action, [3, 0])


class TestDiagonalGaussian:
  @pytest.mark.parametrize(('leading', 'shape'), [([], ()), ([3, 5], (2, 3))])
  def test_log_prob_and_entropy(self, leading, shape):
    distribution = make_gaussian(shape)
    size = math.prod(shape)
    parameters = normal([*leading, 2 * size])
    sample = normal([*leading, *shape], seed=1)
    mean, unscaled = np.split(parameters.numpy().astype(np.float64), 2, -1)
    scale = scale_of(unscaled)
    flat = np.reshape(sample, [*leading, size])
    log_prob = distribution.log_prob(parameters, sample)
    assert log_prob.shape == leading
    np.testing.assert_allclose(
      log_prob, gaussian_log_prob(mean, scale, flat), rtol=1e-4, atol=1e-4
    )
    entropy = distribution.entropy(parameters)
    assert entropy.shape == leading
    # ½ log((2πe)^D |Σ|).
    determinant = np.prod(scale**2, axis=-1)
    expected = 0.5 * np.log((2 * np.pi * np.e) ** size * determinant)
    np.testing.assert_allclose(entropy, expected, rtol=1e-4, atol=1e-4)

  def test_moments_of_samples(self):
    distribution = make_gaussian((2,))
    row = tf.constant([0.5, -3.0, 1.0, -1.0])
    samples, _ = distribution.sample(
      tf.tile(row[None], [NUM_ROWS, 1]), counters_of(NUM_ROWS)
    )
    scale = scale_of([1.0, -1.0])
    error = 4.5 * scale / math.sqrt(NUM_ROWS)
    samples = samples.numpy()
    np.testing.assert_array_less(abs(samples.mean(0) - [0.5, -3.0]), error)
    # The deviation of a deviation is σ / √(2N).
    np.testing.assert_array_less(
      abs(samples.std(0) - scale), error / math.sqrt(2)
    )
    correlation = np.corrcoef(samples.T)[0, 1]
    assert abs(correlation) < 4.5 / math.sqrt(NUM_ROWS)

  def test_initial_scale(self):
    distribution = make_gaussian(())
    entropy = distribution.entropy(tf.zeros([1, 2]))
    scale = math.exp(entropy[0]) / math.sqrt(2 * math.pi * math.e)
    # The least deviation, 10⁻³, may come on top.
    np.testing.assert_allclose(scale, 0.5, atol=1.1e-3)

  def test_stays_finite_when_it_gets_certain(self):
    distribution = make_gaussian(())
    parameters = tf.constant([[0.0, -1e4], [0.0, 80.0]])
    assert np.all(np.isfinite(distribution.entropy(parameters)))
    log_prob = distribution.log_prob(parameters, tf.constant([0.1, 0.1]))
    assert np.all(np.isfinite(log_prob))


# Further ones: see `action_scaling_test.py`.
BOUNDS = [
  ((2, 3), np.float32, -1, 3),
  ((2,), np.float32, [-0.1, 5], [0.3, 7]),
  ((2,), np.float64, -1e300, 1e300),
  ((2,), np.float32, 3, 3),
]


class TestToAction:
  @pytest.mark.parametrize('bounds', BOUNDS, ids=str)
  def test_bounds(self, bounds):
    spec = specs.BoundedArray(*bounds)
    distribution = distributions.make_distribution(spec)
    ones = tf.ones([1, *spec.shape])
    for factor, expected in (
      (-1e6, spec.minimum),
      (-1.0, spec.minimum),
      (0.0, spec.minimum / 2 + spec.maximum / 2),
      (0.5, spec.minimum / 4 + 3 * (spec.maximum / 4)),
      (1.0, spec.maximum),
      (1e6, spec.maximum),
    ):
      action = distribution.to_action(factor * ones).numpy()
      assert action.dtype == spec.dtype
      np.testing.assert_allclose(
        action[0], np.broadcast_to(expected, spec.shape), rtol=1e-6
      )
    for action in distribution.to_action(normal([500, *spec.shape], 0, 2.0)):
      spec.validate(action.numpy())

  def test_without_bounds_the_sample_is_the_action(self):
    samples = normal([50, 2], scale=1e5)
    spec = specs.BoundedArray((2,), np.float32, -np.inf, np.inf)
    distribution = distributions.make_distribution(spec)
    np.testing.assert_array_equal(distribution.to_action(samples), samples)


@pytest.mark.parametrize('counts', [3, [4, 4, 4], [[2, 3], [4, 2]]], ids=str)
def test_multi_categorical_equals_the_twin(counts):
  leading = [3, 5]
  random = np.random.default_rng(0)
  spec = specs.BoundedArray(
    np.shape(counts), np.int32, 0, np.asarray(counts) - 1
  )
  distribution = distributions.make_distribution(spec)
  assert distribution.num_parameters == np.sum(counts)
  parameters = 3 * random.normal(size=[*leading, np.sum(counts)])
  parameters = tf.constant(parameters, tf.float32)
  sample = random.integers(0, counts, [*leading, *spec.shape])

  ends = np.cumsum(np.ravel(counts))[:-1]
  z = parameters.numpy().astype(np.float64)
  p = [softmax(part) for part in np.split(z, ends, -1)]
  flat = np.reshape(sample, [*leading, np.size(counts)])
  chosen = [np.take_along_axis(q, flat[..., [i]], -1) for i, q in enumerate(p)]
  np.testing.assert_allclose(
    distribution.log_prob(parameters, tf.constant(sample, tf.int32)),
    np.log(np.concatenate(chosen, -1)).sum(-1), rtol=1e-4, atol=1e-5,
  )  # fmt: skip
  np.testing.assert_allclose(
    distribution.entropy(parameters),
    sum(-np.sum(q * np.log(q), -1) for q in p), rtol=1e-4, atol=1e-5,
  )  # fmt: skip


@pytest.mark.parametrize(
  ('dtype', 'minimum', 'maximum'),
  [
    (np.uint8, [0, 3], [255, 3]),
    (np.uint64, [2**63] * 2, [2**63 + 2] * 2),
  ],
)
def test_multi_categorical_to_action(dtype, minimum, maximum):
  spec = specs.BoundedArray((2,), dtype, minimum, maximum)
  distribution = distributions.make_distribution(spec)
  samples = np.stack([[0, 0], np.subtract(maximum, minimum)]).astype(np.int32)
  to_action = tf.function(
    distribution.to_action, jit_compile=True, autograph=False
  )
  action = to_action(tf.constant(samples)).numpy()
  assert action.dtype == dtype
  np.testing.assert_array_equal(action, [minimum, maximum])


def test_multi_categorical_refuses_too_many_choices():
  spec = specs.BoundedArray(
    (2,), np.int64, np.iinfo(np.int64).min, [0, np.iinfo(np.int64).max]
  )
  with pytest.raises(
    ValueError, match=r'at most 65,536 values, got 18,446,744'
  ):
    distributions.make_distribution(spec)
