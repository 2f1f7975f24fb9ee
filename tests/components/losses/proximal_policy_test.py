"""Tests of `components/losses/proximal_policy.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def column(*numbers):
  return tf.constant([[float(x)] for x in numbers], tf.float64)


def make_mask(*values):
  return tf.constant([[bool(x)] for x in values])


class TestClippedSurrogateLoss:
  @pytest.mark.parametrize(
    ('ratio', 'advantage', 'surrogate', 'is_free'),
    [
      # Ratio, advantage, min(ρ A, clip(ρ, 0.8, 1.2) A), and whether ρ is free.
      pytest.param(1.1, 2.0, 2.2, True, id='within'),
      pytest.param(0.9, -2.0, -1.8, True, id='within_and_bad'),
      pytest.param(1.5, 2.0, 1.2 * 2, False, id='likelier_and_good'),
      pytest.param(1.5, -2.0, 1.5 * -2, True, id='likelier_and_bad'),
      pytest.param(0.5, 2.0, 0.5 * 2, True, id='rarer_and_good'),
      pytest.param(0.5, -2.0, 0.8 * -2, False, id='rarer_and_bad'),
    ],
  )
  def test_one_step(self, ratio, advantage, surrogate, is_free):
    ratios, advantages = tf.Variable(column(ratio)), column(advantage)
    with tf.GradientTape() as tape:
      tape.watch(advantages)
      loss = losses.clipped_surrogate_loss(
        ratios, advantages, make_mask(1), 0.2
      )
    np.testing.assert_allclose(loss, -surrogate)
    gradients = tape.gradient(loss, [ratios, advantages])
    np.testing.assert_allclose(gradients[0], [[-advantage * is_free]])
    assert gradients[1] is None

  def test_equals_the_equation_over_the_mask(self):
    random = np.random.default_rng(0)
    ratios = np.exp(random.normal(0, 0.3, [6, 5]))
    advantages = random.normal(size=[6, 5])
    mask = random.uniform(size=[6, 5]) < 0.7
    terms = [
      min(r * a, min(max(r, 0.9), 1.1) * a)
      for r, a, m in zip(ratios.ravel(), advantages.ravel(), mask.ravel())
      if m
    ]
    for spoil in (0.0, np.inf, np.nan):
      advantages[~mask] = spoil
      loss = losses.clipped_surrogate_loss(
        tf.constant(ratios), tf.constant(advantages), tf.constant(mask), 0.1
      )
      np.testing.assert_allclose(loss, -np.mean(terms))


class TestClippedValueLoss:
  @pytest.mark.parametrize(
    ('value', 'old_value', 'target', 'expected', 'is_free'),
    [
      # V, V_old and v; ½ of the larger square; whether V is free to move.
      pytest.param(1.2, 1.0, 3.0, 0.5 * 1.8**2, True, id='small_move'),
      # Moved to 2, which counts as 1.5.
      pytest.param(
        2.0, 1.0, 3.0, 0.5 * 1.5**2, False, id='large_move_to_the_target'
      ),
      pytest.param(
        0.0, 1.0, 3.0, 0.5 * 3**2, True, id='large_move_from_the_target'
      ),
      # Beyond the target: 1 off as it is, 0.5 as it counts.
      pytest.param(3.0, 1.0, 2.0, 0.5 * 1**2, True, id='large_move_too_far'),
    ],
  )
  def test_one_step(self, value, old_value, target, expected, is_free):
    values = tf.Variable(column(value))
    with tf.GradientTape() as tape:
      loss = losses.clipped_value_loss(
        values, column(old_value), column(target), make_mask(1), 0.5
      )
    np.testing.assert_allclose(loss, expected)
    np.testing.assert_allclose(
      tape.gradient(loss, values), [[(value - target) * is_free]]
    )

  def test_is_the_mean_over_the_mask(self):
    loss = losses.clipped_value_loss(
      column(1.2, 0.0, 9.0),
      column(1.0, 1.0, 0.0),
      column(3.0, 3.0, -9.0),
      make_mask(1, 1, 0),
      0.5,
    )
    np.testing.assert_allclose(loss, (0.5 * 1.8**2 + 0.5 * 3**2) / 2)


class TestStandardize:
  @pytest.mark.parametrize('spoil', [7.0, np.inf, np.nan])
  def test_mean_and_deviation_are_of_the_mask(self, spoil):
    # Mean 4 and deviation 2, by (2² + 0² + 2² + 2² + 2²) / 5 = 16 / 5.
    values = column(2, 4, 6, spoil, 2, 6)
    actual = losses.standardize(values, make_mask(1, 1, 1, 0, 1, 1))
    expected = np.array([-2, 0, 2, 0, -2, 2]) / np.sqrt(16 / 5)
    np.testing.assert_allclose(actual[:, 0], expected, rtol=1e-6)

  @pytest.mark.parametrize('jit_compile', [False, True])
  @pytest.mark.parametrize('value', [3.7, -0.1, 0.0, 1e-30, 1e30])
  def test_equal_ones_become_zeros(self, value, jit_compile):
    # The mean of many of them, summed up in single precision, is another one.
    standardize = tf.function(
      losses.standardize, jit_compile=jit_compile, autograph=False
    )
    for size in (2, 1_000, 16_384):
      actual = standardize(
        tf.fill([size, 3], tf.constant(value, tf.float32)),
        tf.random.stateless_uniform([size, 3], [0, size]) < 0.7,
      )
      np.testing.assert_array_equal(actual, np.zeros([size, 3]))

  @pytest.mark.parametrize('scale', [1e-30, 1e-4, 1.0, 3.0, 1e30])
  def test_those_equal_up_to_rounding_become_zeros(self, scale):
    near = np.float32(scale) * np.linspace(1, 1 + 1e-6, 50, dtype=np.float32)
    actual = losses.standardize(
      tf.constant(near[:, None]), tf.ones([50, 1], tf.bool)
    )
    np.testing.assert_array_equal(actual, np.zeros([50, 1]))

  @pytest.mark.parametrize('scale', [1e-30, 1e-4, 1.0, 3.0, 1e30])
  @pytest.mark.parametrize('mean', [0.0, 5.0, -1_000.0])
  def test_others_are_as_in_double_precision(self, scale, mean):
    random = np.random.default_rng(0)
    mask = random.uniform(size=[200, 4]) < 0.8
    values = (random.normal(mean, 1, [200, 4]) * scale).astype(np.float32)
    doubles = values.astype(np.float64) / scale
    expected = (doubles - doubles[mask].mean()) / doubles[mask].std()
    # What lies outside the mask has no say in what is large.
    spoiled = np.where(mask, values, np.float32(3e38))
    actual = losses.standardize(tf.constant(spoiled), tf.constant(mask))
    # Large numbers of single precision are further apart.
    tolerance = 1e-6 * max(1, abs(mean))
    np.testing.assert_allclose(
      actual, np.where(mask, expected, 0), rtol=1e-6, atol=tolerance
    )

  @pytest.mark.parametrize('value', [np.nan, np.inf])
  def test_what_is_not_finite_stays_so(self, value):
    actual = losses.standardize(column(1, value, 2), make_mask(1, 1, 1))
    assert not np.all(np.isfinite(actual))

  def test_without_a_step_all_are_zeros(self):
    actual = losses.standardize(column(3, 4), make_mask(0, 0))
    np.testing.assert_array_equal(actual, [[0], [0]])


class TestMeasures:
  def test_approximate_kl(self):
    # ρ − 1 − log ρ of 2, 1 and ½.
    expected = (1 - np.log(2) + 0 + -0.5 + np.log(2)) / 3
    actual = losses.approximate_kl(column(2, 1, 0.5, 9), make_mask(1, 1, 1, 0))
    np.testing.assert_allclose(actual, expected)

  def test_approximate_kl_is_that_of_its_definition(self):
    mu, pi = np.array([0.2, 0.5, 0.3]), np.array([0.4, 0.4, 0.2])
    kl = np.sum(mu * np.log(mu / pi))
    actions = np.random.default_rng(0).choice(3, 100_000, p=mu)
    ratios = tf.constant((pi / mu)[actions][:, None])
    actual = losses.approximate_kl(ratios, tf.ones_like(ratios, tf.bool))
    np.testing.assert_allclose(actual, kl, rtol=0.02)

  def test_explained_variance(self):
    targets, mask = column(1, 3, 5, 100), make_mask(1, 1, 1, 0)
    for values, expected in (
      (column(1, 3, 5, 0), 1),
      (column(11, 13, 15, 0), 1),  # A constant gap has no variance.
      (column(0, 0, 0, 0), 0),
      (column(5, 3, 1, 0), 1 - 4),  # Twice the errors of 0.
    ):
      actual = losses.explained_variance(values, targets, mask)
      np.testing.assert_allclose(actual, expected, atol=1e-12)

  def test_explained_variance_of_equal_targets(self):
    actual = losses.explained_variance(
      column(1, 2), column(3, 3), make_mask(1, 1)
    )
    assert actual == 0


class TestErrors:
  def test_wrong_shapes_are_named(self):
    x, flat, mask = column(1, 2), tf.constant([1.0, 2.0]), make_mask(1, 1)
    for function, arguments, name in (
      (losses.importance_ratios, (x, flat, mask), 'behavior_log_probs'),
      (losses.clipped_surrogate_loss, (x, flat, mask, 0.2), 'advantages'),
      (losses.clipped_value_loss, (x, flat, x, mask, 0.2), 'old_values'),
      (losses.clipped_value_loss, (x, x, flat, mask, 0.2), 'targets'),
      (losses.standardize, (x, mask[:1]), 'mask'),
      (losses.approximate_kl, (x, mask[:1]), 'mask'),
      (losses.explained_variance, (x, flat, mask), 'targets'),
    ):
      with pytest.raises(ValueError, match=f'^{name} must have shape'):
        function(*arguments)
