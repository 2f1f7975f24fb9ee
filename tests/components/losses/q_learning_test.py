"""Tests of `components/losses/q_learning.py`."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def constant(values):
  return tf.constant(values, tf.float32)


@pytest.mark.parametrize('threshold', [0.25, 2.0, 1e4, 1e8])
def test_huber(threshold):
  """Also if ½ κ² beside ½ x² has no digit of x left in single precision."""
  errors = constant([-3.0, -0.0266, 0.0, 1e-3, 0.7, 3.0])
  with tf.GradientTape() as tape:
    tape.watch(errors)
    found = losses.huber(errors, threshold)
  x = errors.numpy().astype(np.float64)
  expected = np.where(
    abs(x) <= threshold, 0.5 * x**2, threshold * (abs(x) - 0.5 * threshold)
  )
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  np.testing.assert_allclose(
    tape.gradient(found, errors), np.clip(x, -threshold, threshold), rtol=1e-6
  )


@pytest.mark.parametrize(
  ('exponent', 'expected'),
  [
    # N P = 2, 1 and ½: raw weights ½, 1 and 2, of which the largest is 2.
    pytest.param(1.0, [1 / 4, 1 / 2, 1], id='beta_1'),
    # Roots of the above.
    pytest.param(0.5, [1 / 2, 1 / 2**0.5, 1], id='beta_half'),
    pytest.param(0.0, [1, 1, 1], id='beta_0'),
  ],
)
def test_importance_weights(exponent, expected):
  weights = losses.importance_weights(
    tf.constant([0.01, 0.01, 0.005], tf.float64),
    tf.constant([200, 100, 100], tf.int64),
    exponent,
  )
  assert weights.dtype == tf.float32
  np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_clipped_double_q_targets():
  targets = losses.clipped_double_q_targets(
    r_t=constant([1, 1, -2]),
    discount_t=constant([0.5, 0.0, 1.0]),
    q_t=constant([[3, 2], [3, 2], [-1, 7]]),
  )
  # The least value counts, and after the end none.
  np.testing.assert_array_equal(targets, [1 + 0.5 * 2, 1, -2 - 1])


class TestConservativeQLoss:
  def test_by_hand(self):
    # Densities 1/2 and 1/4: (e^1 / (1/2) + e^2 / (1/4)) / 2.
    gaps = losses.conservative_q_loss(
      constant([[1, 2]]), constant([[math.log(0.5), math.log(0.25)]]),
      constant([3]),
    )  # fmt: skip
    expected = math.log((2 * math.e + 4 * math.e**2) / 2) - 3
    np.testing.assert_allclose(gaps, [expected], rtol=1e-6)


def test_large_margin_loss():
  q = constant([[1, 3, 2], [1, 3, 2.5], [1, 3, 2], [0, 0, 0]])
  with tf.GradientTape() as tape:
    tape.watch(q)
    gaps = losses.large_margin_loss(q, tf.constant([1, 1, 2, 0], tf.int8), 0.8)
  # Above by enough; by 0.5 alone; below by 1; all alike.
  np.testing.assert_allclose(gaps, [0, 0.3, 1.8, 0.8], rtol=1e-6)
  np.testing.assert_allclose(
    tape.gradient(gaps, q)[:2], [[0, 0, 0], [0, -1, 1]], atol=1e-7
  )


class TestMunchausen:
  def test_scaled_log_policy_keeps_small_differences_of_large_values(self):
    # 2^20 and a difference of 2^-3, which float32 holds; divided by τ first,
    # it would be a third of the rounding error.
    large = 2.0**20
    found = losses.scaled_log_policy(constant([[large, large + 0.125]]), 0.03)
    powers = np.exp([0.0, 0.125 / 0.03])
    expected = 0.03 * np.log(powers / powers.sum())
    np.testing.assert_allclose(found, [expected], rtol=1e-4)

  def test_bonus(self):
    # π = (1/4, 3/4) at τ = 2.
    q = constant([[0, 2 * math.log(3)]] * 2)
    found = losses.munchausen_bonus(
      q, tf.constant([0, 1], tf.uint8), alpha=0.5, temperature=2.0, clip=-1.5
    )
    # 2 log ¼ = −2.77 is below the limit.
    expected = [0.5 * -1.5, 0.5 * 2 * math.log(3 / 4)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
  ('max_abs', 'expected'), [(None, [-3, 0.5, 2]), (1.0, [-1, 0.5, 1])]
)
def test_clip_rewards(max_abs, expected):
  clipped = losses.clip_rewards(constant([-3, 0.5, 2]), max_abs)
  np.testing.assert_array_equal(clipped, expected)
