"""Tests of `components/losses/q_learning.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def slow_huber(errors, threshold):
  """½ x² if |x| ≤ δ, else δ (|x| − ½ δ)."""
  return np.array(
    [
      0.5 * x**2
      if abs(x) <= threshold
      else threshold * (abs(x) - 0.5 * threshold)
      for x in errors
    ]
  )


class TestHuber:
  @pytest.mark.parametrize(
    ('error', 'threshold', 'expected'),
    [
      (0.0, 1.0, 0),
      (0.5, 1.0, 0.5 * 0.25),
      (-0.5, 1.0, 0.5 * 0.25),
      (1.0, 1.0, 0.5),
      (3.0, 1.0, 3 - 0.5),
      (-3.0, 1.0, 3 - 0.5),
      # Not ½ + (|x| − δ), which would be right for δ = 1 alone.
      (5.0, 2.0, 2 * (5 - 1)),
      (-1.0, 0.25, 0.25 * (1 - 0.125)),
    ],
  )
  def test_value(self, error, threshold, expected):
    loss = losses.huber(tf.constant([error]), threshold)
    np.testing.assert_allclose(loss, [expected], rtol=1e-6)

  @pytest.mark.parametrize('threshold', [0.25, 1.0, 2.0])
  def test_slope_is_the_error_clipped_at_the_threshold(self, threshold):
    errors = tf.Variable(np.linspace(-4, 4, 33))
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(losses.huber(errors, threshold))
    np.testing.assert_allclose(
      tape.gradient(loss, errors),
      np.clip(errors.numpy(), -threshold, threshold),
      atol=1e-12,
    )

  @pytest.mark.parametrize('threshold', [1.0, 1e4, 1e6, 1e8])
  def test_a_large_threshold_keeps_small_errors(self, threshold):
    # ½ κ² beside ½ x² has no digit of x left in single precision.
    errors = tf.constant([-3.0, -0.0266, 1e-3, 0.0266, 0.7, 3.0])
    with tf.GradientTape() as tape:
      tape.watch(errors)
      found = losses.huber(errors, threshold)
    double = errors.numpy().astype(np.float64)
    np.testing.assert_allclose(found, slow_huber(double, threshold), rtol=1e-6)
    np.testing.assert_allclose(
      tape.gradient(found, errors),
      np.clip(double, -threshold, threshold),
      rtol=1e-6,
    )

  def test_keeps_the_shape(self):
    errors = np.random.default_rng(0).normal(0, 2, size=[3, 4])
    loss = losses.huber(tf.constant(errors), 1.0)
    assert loss.shape == [3, 4]
    np.testing.assert_allclose(
      tf.reshape(loss, [-1]), slow_huber(errors.reshape(-1), 1.0)
    )


def slow_weights(probabilities, table_sizes, exponent):
  """w_i = (N_i P_i)^-β / max_j w_j."""
  raw = [(1 / (n * p)) ** exponent for n, p in zip(table_sizes, probabilities)]
  return np.array(raw) / max(raw)


class TestImportanceWeights:
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
  def test_by_hand(self, exponent, expected):
    weights = losses.importance_weights(
      tf.constant([0.02, 0.01, 0.005], tf.float64),
      tf.constant([100, 100, 100], tf.int64),
      exponent,
    )
    assert weights.dtype == tf.float32
    np.testing.assert_allclose(weights, expected, rtol=1e-6)

  def test_table_size_counts(self):
    # N P = 1 and 4 with equal P: without N the weights would be equal.
    weights = losses.importance_weights(
      tf.constant([0.01, 0.01], tf.float64),
      tf.constant([100, 400], tf.int64),
      1.0,
    )
    np.testing.assert_allclose(weights, [1, 1 / 4], rtol=1e-6)

  @pytest.mark.parametrize('exponent', [0.0, 0.4, 1.0])
  def test_equals_the_equation(self, exponent):
    random = np.random.default_rng(3)
    probabilities = random.uniform(1e-9, 1e-2, size=64)
    table_sizes = random.integers(1, 10**6, size=64)
    weights = losses.importance_weights(
      tf.constant(probabilities), tf.constant(table_sizes), exponent
    ).numpy()
    np.testing.assert_allclose(
      weights, slow_weights(probabilities, table_sizes, exponent), rtol=1e-6
    )
    assert weights.max() == 1
    assert weights.min() > 0

  @pytest.mark.parametrize(
    ('probabilities', 'table_sizes', 'name'),
    [([[0.1]], [1], 'probabilities'), ([0.1], 1, 'table_sizes')],
  )
  def test_wrong_rank_is_named(self, probabilities, table_sizes, name):
    with pytest.raises(ValueError, match=f'^{name} must have rank 1, got'):
      losses.importance_weights(
        tf.constant(probabilities, tf.float64),
        tf.constant(table_sizes, tf.int64),
        0.5,
      )
