"""Tests of `components/losses/value_transforms.py`."""

import decimal

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from repertory.components import losses

EPSILONS = [1e-3, 1e-2, 1.0]
# Both signs, 16 decades, and 0.
SIZES = np.geomspace(1e-8, 1e8, 129)
POINTS = np.concatenate([-SIZES[::-1], [0.0], SIZES])


def published_rescale(x, epsilon):
  """sign(x) (√(|x| + 1) − 1) + ε x, in 60 digits."""
  with decimal.localcontext(decimal.Context(prec=60)):
    x, epsilon = decimal.Decimal(float(x)), decimal.Decimal(epsilon)
    sign = (x > 0) - (x < 0)
    return float(sign * ((abs(x) + 1).sqrt() - 1) + epsilon * x)


def published_inverse(x, epsilon):
  """sign(x) (((√(1 + 4ε (|x| + 1 + ε)) − 1) / 2ε)² − 1), in 60 digits."""
  with decimal.localcontext(decimal.Context(prec=60)):
    x, epsilon = decimal.Decimal(float(x)), decimal.Decimal(epsilon)
    sign = (x > 0) - (x < 0)
    root = (1 + 4 * epsilon * (abs(x) + 1 + epsilon)).sqrt()
    return float(sign * (((root - 1) / (2 * epsilon)) ** 2 - 1))


class ValueTransformsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    # √(3 + 1) − 1 = 1 and √(8 + 1) − 1 = 2; ε comes on top.
    {'testcase_name': 'three', 'x': 3.0, 'expected': 1 + 0.01 * 3},
    {'testcase_name': 'eight', 'x': 8.0, 'expected': 2 + 0.01 * 8},
    {'testcase_name': 'minus_eight', 'x': -8.0, 'expected': -2 - 0.01 * 8},
    {'testcase_name': 'zero', 'x': 0.0, 'expected': 0},
  )
  def test_by_hand(self, x, expected):
    rescaled = losses.rescale(tf.constant([x]), 0.01)
    np.testing.assert_allclose(rescaled, [expected], rtol=1e-6)
    restored = losses.undo_rescale(tf.constant([expected], tf.float32), 0.01)
    np.testing.assert_allclose(restored, [x], rtol=1e-5)

  @parameterized.product(
    precision=[(tf.float64, 1e-13), (tf.float32, 1e-6)],
    epsilon=EPSILONS,
    name=['rescale', 'undo_rescale'],
  )
  def test_equals_the_published_formula(self, precision, epsilon, name):
    dtype, tolerance = precision
    slow = {'rescale': published_rescale, 'undo_rescale': published_inverse}
    x = tf.constant(POINTS, dtype)
    y = getattr(losses, name)(x, epsilon)
    self.assertEqual(y.dtype, dtype)
    # The points as they are in this precision.
    expected = [slow[name](point, epsilon) for point in x.numpy()]
    np.testing.assert_allclose(y, expected, rtol=tolerance)

  @parameterized.parameters(*EPSILONS)
  def test_each_undoes_the_other(self, epsilon):
    x = tf.constant(POINTS, tf.float32)
    there_and_back = losses.undo_rescale(losses.rescale(x, epsilon), epsilon)
    np.testing.assert_allclose(there_and_back, x, rtol=1e-5)
    back_and_there = losses.rescale(losses.undo_rescale(x, epsilon), epsilon)
    np.testing.assert_allclose(back_and_there, x, rtol=1e-5)

  @parameterized.product(epsilon=EPSILONS, name=['rescale', 'undo_rescale'])
  def test_is_odd_and_monotone(self, epsilon, name):
    function = getattr(losses, name)
    y = function(tf.constant(POINTS, tf.float32), epsilon).numpy()
    # Vectorized code may round an entry otherwise than its mirror image.
    np.testing.assert_allclose(y, -y[::-1], rtol=1e-6)
    self.assertEqual(y[len(SIZES)], 0)
    self.assertTrue(np.all(np.diff(y) > 0))

  @parameterized.parameters(*EPSILONS)
  def test_slope_of_rescale(self, epsilon):
    x = tf.Variable([0.0, 3.0, -8.0])
    with tf.GradientTape() as tape:
      y = losses.rescale(x, epsilon)
    # h'(x) = 1 / (2 √(|x| + 1)) + ε.
    expected = [1 / 2 + epsilon, 1 / 4 + epsilon, 1 / 6 + epsilon]
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-6)

  @parameterized.parameters(*EPSILONS)
  def test_slope_of_the_inverse(self, epsilon):
    points = np.array([3.0, -8.0])
    x = tf.Variable([published_rescale(p, epsilon) for p in points])
    with tf.GradientTape() as tape:
      y = losses.undo_rescale(x, epsilon)
    # One over the slope of h where it came from.
    expected = 1 / (np.array([1 / 4, 1 / 6]) + epsilon)
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-5)

  def test_slope_of_the_inverse_at_zero(self):
    # sign(0) = 0 is a factor, so the gradient is 0.
    x = tf.Variable([0.0])
    with tf.GradientTape() as tape:
      y = losses.undo_rescale(x, 0.01)
    np.testing.assert_allclose(tape.gradient(y, x), [1 / 0.51], rtol=1e-6)

  @parameterized.parameters([[]], [[3]], [[2, 3, 4]])
  def test_keeps_the_shape(self, shape):
    x = tf.ones(shape)
    self.assertEqual(losses.rescale(x, 0.01).shape, shape)
    self.assertEqual(losses.undo_rescale(x, 0.01).shape, shape)

  @parameterized.product(
    epsilon=[0.0, -1e-3, float('nan')], name=['rescale', 'undo_rescale']
  )
  def test_epsilon_must_be_positive(self, epsilon, name):
    with self.assertRaisesRegex(ValueError, '^epsilon must be positive, got'):
      getattr(losses, name)(tf.ones([1]), epsilon)

  @parameterized.parameters('rescale', 'undo_rescale')
  def test_compiled_equals_eager(self, name):
    function = getattr(losses, name)
    x = tf.constant(POINTS)
    np.testing.assert_allclose(
      tf.function(function, jit_compile=True)(x, 1e-3),
      function(x, 1e-3),
      rtol=1e-12,
    )


if __name__ == '__main__':
  absltest.main()
