"""Tests of `Categorical` and `DiagonalGaussian`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import distributions, specs
from repertory.components.runtime import random_streams

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
  @pytest.mark.parametrize('leading', [[], [5], [3, 5], [2, 3, 5]])
  def test_log_prob_and_entropy(self, leading):
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

  @pytest.mark.parametrize('jit_compile', [False, True])
  def test_sampling_frequencies(self, jit_compile):
    row = [0.3, -1.0, 2.0, 0.0]
    distribution = make_categorical()
    sample = tf.function(
      distribution.sample, jit_compile=jit_compile, autograph=False
    )
    samples, _ = sample(tf.constant([row] * NUM_ROWS), counters_of(NUM_ROWS))
    assert samples.dtype == tf.int32
    for action, p in enumerate(softmax(np.array(row))):
      count = np.count_nonzero(samples == action)
      deviation = math.sqrt(NUM_ROWS * p * (1 - p))
      assert abs(count - NUM_ROWS * p) < 4.5 * deviation, action

  def test_one_stream_has_the_frequencies_too(self):
    # The rows above draw once each; here one row draws again and again.
    distribution, counters = make_categorical(3), counters_of(50)
    logits = tf.tile([[0.0, 1.0, -1.0]], [50, 1])
    counts = np.zeros(3)
    for _ in range(200):
      samples, counters = distribution.sample(logits, counters)
      counts += np.bincount(samples, minlength=3)
    p = softmax(np.array([0.0, 1.0, -1.0]))
    deviation = np.sqrt(10_000 * p * (1 - p))
    np.testing.assert_array_less(np.abs(counts - 10_000 * p), 4.5 * deviation)

  def test_never_draws_what_cannot_be(self):
    logits = tf.tile([[-1e9, 0.0, -1e9, 0.0, -1e9]], [NUM_ROWS, 1])
    distribution = make_categorical(5)
    samples, _ = distribution.sample(logits, counters_of(NUM_ROWS))
    assert set(samples.numpy()) == {1, 3}

  def test_never_draws_what_cannot_be_where_xla_rounds(self, monkeypatch):
    random = np.random.default_rng(0)
    is_masked = random.random([500, 40]) < 0.5
    logits = np.where(is_masked, -1e9, random.normal(size=is_masked.shape))
    logits, rows = logits.astype(np.float32), np.arange(len(logits))
    # Counters are drawn as they are: the sums that XLA finds, which are the
    # edges of the choices.
    monkeypatch.setattr(
      random_streams, 'next_uniforms', lambda numbers: (numbers,) * 3
    )
    find_edges, sample = (
      tf.function(one, jit_compile=True, autograph=False)
      for one in (
        lambda logits: tf.cumsum(tf.nn.softmax(logits), -1),
        make_categorical(40).sample,
      )
    )
    for edge in np.transpose(find_edges(logits)):
      samples, _ = sample(logits, edge)
      assert not is_masked[rows, samples].any()

  def test_stays_within_many_actions(self):
    # Rounding must not lead to an action beyond the last.
    samples, _ = make_categorical(1000).sample(
      tf.zeros([NUM_ROWS, 1000]), counters_of(NUM_ROWS)
    )
    assert 0 <= np.min(samples) <= 5
    assert 994 <= np.max(samples) <= 999

  def test_single_action(self):
    samples, _ = make_categorical(1).sample(tf.zeros([3, 1]), counters_of(3))
    np.testing.assert_array_equal(samples, [0, 0, 0])

  def test_mode(self):
    logits = tf.constant([[0.0, 2.0, 1.0, -1.0], [5.0, 2.0, 1.0, 4.0]])
    mode = make_categorical().mode(logits)
    assert mode.dtype == tf.int32
    np.testing.assert_array_equal(mode, [1, 0])

  @pytest.mark.parametrize('dtype', [np.int32, np.int64, np.uint8])
  def test_to_action_has_the_dtype(self, dtype):
    action = make_categorical(4, dtype).to_action(tf.constant([3, 0]))
    assert action.dtype.as_numpy_dtype == dtype
    np.testing.assert_array_equal(action, [3, 0])


class TestDiagonalGaussian:
  @pytest.mark.parametrize('leading', [[], [5], [3, 5], [2, 3, 5]])
  @pytest.mark.parametrize('shape', [(), (1,), (3,), (2, 3)])
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

  @pytest.mark.parametrize('jit_compile', [False, True])
  def test_moments_of_samples(self, jit_compile):
    distribution = make_gaussian((2,))
    row = tf.constant([0.5, -3.0, 1.0, -1.0])
    sample = tf.function(
      distribution.sample, jit_compile=jit_compile, autograph=False
    )
    samples, _ = sample(
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

  def test_entropy_is_the_mean_of_log_prob(self):
    distribution = make_gaussian((3,))
    parameters = tf.tile(normal([1, 6]), [NUM_ROWS, 1])
    samples, _ = distribution.sample(parameters, counters_of(NUM_ROWS))
    log_probs = distribution.log_prob(parameters, samples)
    # log p is −½ χ²₃ + constant, whose deviation is √(3/2).
    np.testing.assert_allclose(
      -np.mean(log_probs),
      distribution.entropy(parameters)[0],
      atol=4.5 * math.sqrt(1.5 / NUM_ROWS),
    )

  @pytest.mark.parametrize('shape', [(), (3,), (2, 3)])
  def test_shapes_match_the_spec(self, shape):
    distribution = make_gaussian(shape)
    assert distribution.num_parameters == 2 * math.prod(shape)
    assert distribution.sample_spec.shape == shape
    parameters = normal([7, distribution.num_parameters])
    samples, counters = distribution.sample(parameters, counters_of(7))
    assert samples.shape == [7, *shape]
    assert counters.shape == [7]
    assert distribution.mode(parameters).shape == [7, *shape]
    assert distribution.to_action(samples).shape == [7, *shape]

  def test_mode_is_the_mean(self):
    mode = make_gaussian((2,)).mode(tf.constant([[0.5, -3.0, 9.0, 9.0]]))
    np.testing.assert_array_equal(mode, [[0.5, -3.0]])

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


LARGEST = np.finfo(np.float32).max
BOUNDS = {
  'usual': ((2,), np.float32, -1, 1),
  'scalar': ((), np.float32, -2, 2),
  'matrix': ((2, 3), np.float32, -1, 3),
  'huge': ((2,), np.float32, -1e30, 3e30),
  'whole_float32': ((2,), np.float32, -LARGEST, LARGEST),
  'tiny': ((2,), np.float32, -1e-30, 1e-30),
  'far_from_zero': ((2,), np.float32, 1000, 1000.001),
  'asymmetric': ((2,), np.float32, [-0.1, 5], [0.3, 7]),
  'float64': ((2,), np.float64, -0.1, 0.7),
  'huge_float64': ((2,), np.float64, -1e300, 1e300),
  'one_value': ((2,), np.float32, 3, 3),
}


class TestToAction:
  @pytest.mark.parametrize(
    'spec',
    [
      pytest.param(specs.BoundedArray(*values), id=name)
      for name, values in BOUNDS.items()
    ],
  )
  def test_bounds(self, spec):
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

  @pytest.mark.parametrize(
    ('minimum', 'maximum'), [(1e-40, 1), (-1, -1e-40), (-1, 1e-40)]
  )
  def test_bounds_that_processors_take_for_zero(self, minimum, maximum):
    spec = specs.BoundedArray((2,), np.float32, minimum, maximum)
    distribution = distributions.make_distribution(spec)
    for sample in (-2.0, -1.0, 0.0, 1.0, 2.0):
      spec.validate(distribution.to_action(tf.fill([1, 2], sample))[0].numpy())

  @pytest.mark.parametrize(
    ('minimum', 'maximum'), [(1e-40, 2e-40), (-2e-40, -1e-40)]
  )
  def test_bounds_with_nothing_else_between(self, minimum, maximum):
    spec = specs.BoundedArray((2,), np.float32, minimum, maximum)
    with pytest.raises(ValueError, match='do not flush to 0'):
      distributions.make_distribution(spec)

  @pytest.mark.parametrize('jit_compile', [False, True])
  def test_compiled(self, jit_compile):
    spec = specs.BoundedArray((2,), np.float32, [-0.1, 5], [0.3, 7])
    distribution = distributions.make_distribution(spec)
    samples = tf.constant([[0.5, 0.5], [-9, 9]], tf.float32)
    action = tf.function(
      distribution.to_action, jit_compile=jit_compile, autograph=False
    )
    # 0.1 + 0.2 · 0.5 and 6 + 1 · 0.5.
    np.testing.assert_allclose(
      action(samples), [[0.2, 6.5], [-0.1, 7]], rtol=1e-6
    )

  @pytest.mark.parametrize(
    'spec',
    [
      specs.Array((2,), np.float32),
      specs.BoundedArray((2,), np.float32, -np.inf, np.inf),
    ],
  )
  def test_without_bounds_the_sample_is_the_action(self, spec):
    samples = normal([50, 2], scale=1e5)
    distribution = distributions.make_distribution(spec)
    np.testing.assert_array_equal(distribution.to_action(samples), samples)

  def test_bounded_on_one_side_or_in_one_entry(self):
    spec = specs.BoundedArray(
      (3,), np.float32, [-np.inf, 2, 10], [1, np.inf, 14]
    )
    distribution = distributions.make_distribution(spec)
    samples = tf.constant([[-50, 50, 0.5], [50, -50, 50]], tf.float32)
    np.testing.assert_allclose(
      # In [2, ∞) a sample of 0 is 3.
      distribution.to_action(samples),
      [[-50, 53, 13], [1, 2, 14]],
    )

  @pytest.mark.parametrize(
    ('minimum', 'maximum', 'first'),
    [
      (100, np.inf, 101),
      (-np.inf, -7, -8),
      (0, np.inf, 1),
      (-5, np.inf, 0),
      (-np.inf, 1.5, 0),
    ],
  )
  def test_begins_within_a_bound_on_one_side(self, minimum, maximum, first):
    spec = specs.BoundedArray((1,), np.float32, minimum, maximum)
    distribution = distributions.make_distribution(spec)
    actions = distribution.to_action(tf.constant([[0.0], [0.5], [-0.5]]))
    np.testing.assert_allclose(actions, [[first], [first + 0.5], [first - 0.5]])
    # With the first deviation, ½, the bound is at two deviations, beyond which
    # there is 1 sample of 44.
    samples, _ = distribution.sample(
      tf.zeros([NUM_ROWS, 2]), counters_of(NUM_ROWS)
    )
    actions = distribution.to_action(samples).numpy()
    assert np.mean((actions > minimum) & (actions < maximum)) > 0.95

  def test_bounds_of_the_whole_of_float64(self):
    largest = np.finfo(np.float64).max
    spec = specs.BoundedArray((1,), np.float64, -largest, largest)
    distribution = distributions.make_distribution(spec)
    actions = distribution.to_action(tf.constant([[0.0], [0.5], [2.0]])).numpy()
    np.testing.assert_allclose(actions[:, 0] / largest, [0, 0.5, 1])


class TestRows:
  """Samples of a row do not depend on other rows."""

  @pytest.mark.parametrize('kind', ['categorical', 'gaussian'])
  @pytest.mark.parametrize('jit', [False, True])
  def test_batch_has_no_influence(self, kind, jit):
    distribution = make_categorical(50)
    if kind == 'gaussian':
      distribution = make_gaussian((3,))
    parameters = normal([8, distribution.num_parameters])
    counters = counters_of(8)
    sample = tf.function(distribution.sample, jit_compile=jit, autograph=False)
    together, after = sample(parameters, counters)
    assert np.all(after.numpy() != counters.numpy())
    for rows in ([0], [5], [6, 1, 3]):
      alone, alone_after = sample(
        tf.gather(parameters, rows), tf.gather(counters, rows)
      )
      np.testing.assert_allclose(alone, together.numpy()[rows], rtol=1e-5)
      np.testing.assert_array_equal(alone_after, after.numpy()[rows])
    again, _ = sample(parameters, after)
    assert not np.array_equal(again, together)
