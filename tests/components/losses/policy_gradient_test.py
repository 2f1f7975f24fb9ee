"""Tests of `components/losses/policy_gradient.py` and of masked means."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses

# Three of four steps count.
_MASK = tf.constant([[True, True], [False, True]])


def _column(*numbers):
  return tf.constant([[float(x)] for x in numbers], tf.float64)


def _mask(*values):
  return tf.constant([[bool(x)] for x in values])


def _value_and_gradient(loss, x, *others):
  x = tf.constant(x)
  with tf.GradientTape() as tape:
    tape.watch(x)
    value = loss(x, *map(tf.constant, others), _MASK)
  return value.numpy(), tape.gradient(value, x).numpy()


@pytest.mark.parametrize('spoil', [10.0, np.nan, np.inf, 1e30])
class TestActorCriticLosses:
  """Nothing outside the mask counts, also not in gradients."""

  def test_masked_mean(self, spoil):
    mean, gradient = _value_and_gradient(
      losses.masked_mean, [[1.0, 2.0], [spoil, 4.0]]
    )
    np.testing.assert_allclose(mean, 7 / 3, rtol=1e-6)
    np.testing.assert_allclose(gradient, [[1 / 3, 1 / 3], [0, 1 / 3]])

  @pytest.mark.parametrize('advantage', [10.0, np.nan])
  def test_policy_gradient_loss(self, advantage, spoil):
    loss, gradient = _value_and_gradient(
      losses.policy_gradient_loss,
      [[-1.0, -2.0], [spoil, -4.0]],
      [[2.0, -1.0], [advantage, 3.0]],
    )
    np.testing.assert_allclose(
      loss, -(-1 * 2 + -2 * -1 + -4 * 3) / 3, rtol=1e-6
    )
    # −A / 3: the likelihood of better actions increases.
    np.testing.assert_allclose(gradient, [[-2 / 3, 1 / 3], [0, -1]], rtol=1e-6)

  def test_entropy_loss(self, spoil):
    loss, gradient = _value_and_gradient(
      losses.entropy_loss, [[0.5, 1.0], [spoil, 0.25]]
    )
    np.testing.assert_allclose(loss, -(0.5 + 1 + 0.25) / 3, rtol=1e-6)
    np.testing.assert_allclose(gradient, [[-1 / 3, -1 / 3], [0, -1 / 3]])

  def test_value_loss(self, spoil):
    for value, target in ((spoil, 0.0), (0.0, spoil)):
      loss, gradient = _value_and_gradient(
        losses.value_loss,
        [[1.0, 2.0], [value, 4.0]],
        [[3.0, -1.0], [target, 4.5]],
      )
      # Errors of 2, −3 and ½.
      np.testing.assert_allclose(loss, (4 + 9 + 0.25) / 2 / 3, rtol=1e-6)
      expected = [[-2 / 3, 3 / 3], [0, -0.5 / 3]]
      np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_mean_of_no_step_is_zero():
  assert losses.masked_mean(_column(np.nan, 5), _mask(0, 0)) == 0


class TestImportanceRatios:
  def test_values_and_gradient(self):
    target = tf.constant([[0.0], [1.0], [95.0], [1e5]])
    behavior = tf.constant([[1.0], [0.5], [0.0], [-1e5]])
    with tf.GradientTape() as tape:
      tape.watch(target)
      ratios = losses.importance_ratios(target, behavior, _mask(1, 1, 1, 0))
      total = tf.reduce_sum(ratios)
    expected = [np.exp(-1), np.exp(0.5), np.exp(20), 1]
    np.testing.assert_allclose(ratios[:, 0], expected, rtol=1e-5)
    # The masked ratio is infinite, and yet gives no NaN.
    np.testing.assert_allclose(
      tape.gradient(total, target)[:, 0], [*expected[:2], 0, 0], rtol=1e-6
    )


class TestClippedSurrogateLoss:
  @pytest.mark.parametrize(
    ('ratio', 'advantage', 'surrogate', 'is_free'),
    [
      # Ratio, advantage, min(ρ A, clip(ρ, 0.8, 1.2) A), and whether ρ is free.
      pytest.param(1.1, 2.0, 2.2, True, id='within'),
      pytest.param(1.5, 2.0, 1.2 * 2, False, id='likelier_and_good'),
      pytest.param(1.5, -2.0, 1.5 * -2, True, id='likelier_and_bad'),
      pytest.param(0.5, 2.0, 0.5 * 2, True, id='rarer_and_good'),
      pytest.param(0.5, -2.0, 0.8 * -2, False, id='rarer_and_bad'),
    ],
  )
  def test_one_step(self, ratio, advantage, surrogate, is_free):
    ratios = _column(ratio, 1)
    with tf.GradientTape() as tape:
      tape.watch(ratios)
      loss = losses.clipped_surrogate_loss(
        ratios, _column(advantage, np.nan), _mask(1, 0), 0.2
      )
    np.testing.assert_allclose(loss, -surrogate)
    np.testing.assert_allclose(
      tape.gradient(loss, ratios), [[-advantage * is_free], [0]]
    )


class TestClippedValueLoss:
  @pytest.mark.parametrize(
    ('value', 'old_value', 'target', 'expected', 'is_free'),
    [
      # V, V_old and v; ½ of the larger square; whether V is free to move.
      pytest.param(1.2, 1.0, 3.0, 0.5 * 1.8**2, True, id='small_move'),
      # Moved to 2, which counts as 1.5.
      pytest.param(2.0, 1.0, 3.0, 0.5 * 1.5**2, False, id='to_the_target'),
      pytest.param(0.0, 1.0, 3.0, 0.5 * 3**2, True, id='from_the_target'),
      # Beyond the target: 1 off as it is, 0.5 as it counts.
      pytest.param(3.0, 1.0, 2.0, 0.5 * 1**2, True, id='too_far'),
    ],
  )
  def test_one_step(self, value, old_value, target, expected, is_free):
    values = _column(value, 9)
    with tf.GradientTape() as tape:
      tape.watch(values)
      loss = losses.clipped_value_loss(
        values, _column(old_value, 0), _column(target, -9), _mask(1, 0), 0.5
      )
    np.testing.assert_allclose(loss, expected)
    np.testing.assert_allclose(
      tape.gradient(loss, values), [[(value - target) * is_free], [0]]
    )


class TestStandardize:
  def test_equal_ones_become_zeros(self):
    # The mean of many of them, summed up in single precision, is another one.
    standardize = tf.function(
      losses.standardize, jit_compile=True, autograph=False
    )
    mask = tf.random.stateless_uniform([1_000, 3], [0, 1]) < 0.7
    for value in (3.7, 0.0, 1e-30, 1e30):
      actual = standardize(
        tf.fill([1_000, 3], tf.constant(value, tf.float32)), mask
      )
      np.testing.assert_array_equal(actual, np.zeros([1_000, 3]))

  @pytest.mark.parametrize('scale', [1e-30, 1e30])
  def test_those_equal_up_to_rounding_become_zeros(self, scale):
    near = np.float32(scale) * np.linspace(1, 1 + 1e-6, 50, dtype=np.float32)
    actual = losses.standardize(
      tf.constant(near[:, None]), tf.ones([50, 1], tf.bool)
    )
    np.testing.assert_array_equal(actual, np.zeros([50, 1]))

  @pytest.mark.parametrize('scale', [1e-30, 1e30])
  @pytest.mark.parametrize('mean', [0.0, -1_000.0])
  def test_others_are_as_in_double_precision(self, scale, mean):
    random = np.random.default_rng(0)
    mask = random.uniform(size=[200, 4]) < 0.8
    values = (random.normal(mean, 1, [200, 4]) * scale).astype(np.float32)
    doubles = values.astype(np.float64) / scale
    expected = (doubles - doubles[mask].mean()) / doubles[mask].std()
    # Numbers outside the mask do not matter.
    spoiled = np.where(mask, values, np.float32(3e38))
    actual = losses.standardize(tf.constant(spoiled), tf.constant(mask))
    # Large numbers of single precision are further apart.
    tolerance = 1e-6 * max(1, abs(mean))
    np.testing.assert_allclose(
      actual, np.where(mask, expected, 0), rtol=1e-6, atol=tolerance
    )

  @pytest.mark.parametrize('value', [np.nan, np.inf])
  def test_not_finite_numbers_stay_so(self, value):
    actual = losses.standardize(_column(1, value, 2), _mask(1, 1, 1))
    assert not np.all(np.isfinite(actual))


def test_approximate_kl():
  # ρ − 1 − log ρ of 2, 1 and ½.
  expected = (1 - np.log(2) + 0 + -0.5 + np.log(2)) / 3
  actual = losses.approximate_kl(_column(2, 1, 0.5, 9), _mask(1, 1, 1, 0))
  np.testing.assert_allclose(actual, expected)
  assert np.isfinite(losses.approximate_kl(_column(0), _mask(1)))


@pytest.mark.parametrize(
  ('values', 'expected'),
  [
    ((1, 3, 5, 0), 1),
    ((11, 13, 15, 0), 1),  # A constant gap has no variance.
    ((0, 0, 0, 0), 0),
    ((5, 3, 1, 0), 1 - 4),  # Twice the errors of 0.
  ],
)
def test_explained_variance(values, expected):
  mask = _mask(1, 1, 1, 0)
  actual = losses.explained_variance(
    _column(*values), _column(1, 3, 5, 100), mask
  )
  np.testing.assert_allclose(actual, expected, atol=1e-12)
  equal = losses.explained_variance(_column(*values), _column(3, 3, 3, 3), mask)
  assert equal == 0


class TestDeterministicPolicyLoss:
  @pytest.mark.parametrize(
    ('max_norm', 'expected'),
    # |(3, 4)| = 5 and |(0, 0.5)| = 0.5.
    [(None, [[3, 4], [0, 0.5]]), (1.0, [[0.6, 0.8], [0, 0.5]])],
  )
  def test_gradient_is_minus_that_of_the_value(self, max_norm, expected):
    action = tf.constant([[0.5, -0.5], [0.1, 0.2]])
    dqda = tf.constant([[3.0, 4.0], [0.0, 0.5]])
    with tf.GradientTape(persistent=True) as tape:
      tape.watch([action, dqda])
      loss = losses.deterministic_policy_loss(action, dqda, max_norm)
    # Of the mean over two rows.
    np.testing.assert_allclose(
      tape.gradient(loss, action), -np.array(expected) / 2, atol=1e-6
    )
    assert tape.gradient(loss, dqda) is None
    np.testing.assert_allclose(
      loss, 0.5 * np.sum(np.square(expected)) / 2, rtol=1e-5
    )

  def test_keeps_a_small_slope_beside_a_large_action(self):
    # In single precision 300 + 10⁻⁵ is 300.
    action = tf.constant([[300.0, -1.0]])
    dqda = np.array([[1e-5, -1e-9]], np.float32)
    with tf.GradientTape() as tape:
      tape.watch(action)
      loss = losses.deterministic_policy_loss(action, dqda)
    np.testing.assert_allclose(tape.gradient(loss, action), -dqda, rtol=1e-6)
    assert losses.deterministic_policy_loss(action, 0 * dqda, 1.0) == 0
