"""Tests of `components/losses/value_transforms.py`."""

import decimal

import numpy as np
import pytest
import tensorflow as tf

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


@pytest.mark.parametrize(
  ('x', 'expected'),
  [
    # √(3 + 1) − 1 = 1 and √(8 + 1) − 1 = 2; ε comes on top.
    pytest.param(3.0, 1 + 0.01 * 3, id='three'),
    pytest.param(8.0, 2 + 0.01 * 8, id='eight'),
    pytest.param(-8.0, -2 - 0.01 * 8, id='minus_eight'),
    pytest.param(0.0, 0, id='zero'),
  ],
)
def test_by_hand(x, expected):
  rescaled = losses.rescale(tf.constant([x]), 0.01)
  np.testing.assert_allclose(rescaled, [expected], rtol=1e-6)
  restored = losses.inverse_rescale(tf.constant([expected], tf.float32), 0.01)
  np.testing.assert_allclose(restored, [x], rtol=1e-5)


@pytest.mark.parametrize('precision', [(tf.float64, 1e-13), (tf.float32, 1e-6)])
@pytest.mark.parametrize('epsilon', EPSILONS)
@pytest.mark.parametrize('name', ['rescale', 'inverse_rescale'])
def test_equals_the_published_formula(precision, epsilon, name):
  dtype, tolerance = precision
  slow = {'rescale': published_rescale, 'inverse_rescale': published_inverse}
  x = tf.constant(POINTS, dtype)
  y = getattr(losses, name)(x, epsilon)
  assert y.dtype == dtype
  # The points as they are in this precision.
  expected = [slow[name](point, epsilon) for point in x.numpy()]
  np.testing.assert_allclose(y, expected, rtol=tolerance)


@pytest.mark.parametrize('epsilon', EPSILONS)
def test_each_undoes_the_other(epsilon):
  x = tf.constant(POINTS, tf.float32)
  there_and_back = losses.inverse_rescale(losses.rescale(x, epsilon), epsilon)
  np.testing.assert_allclose(there_and_back, x, rtol=1e-5)
  back_and_there = losses.rescale(losses.inverse_rescale(x, epsilon), epsilon)
  np.testing.assert_allclose(back_and_there, x, rtol=1e-5)


@pytest.mark.parametrize('epsilon', EPSILONS)
@pytest.mark.parametrize('name', ['rescale', 'inverse_rescale'])
def test_is_odd_and_monotone(epsilon, name):
  function = getattr(losses, name)
  y = function(tf.constant(POINTS, tf.float32), epsilon).numpy()
  # Vectorized code may round an entry otherwise than its mirror image.
  np.testing.assert_allclose(y, -y[::-1], rtol=1e-6)
  assert y[len(SIZES)] == 0
  assert np.all(np.diff(y) > 0)


@pytest.mark.parametrize('epsilon', EPSILONS)
def test_slope_of_rescale(epsilon):
  x = tf.Variable([0.0, 3.0, -8.0])
  with tf.GradientTape() as tape:
    y = losses.rescale(x, epsilon)
  # h'(x) = 1 / (2 √(|x| + 1)) + ε.
  expected = [1 / 2 + epsilon, 1 / 4 + epsilon, 1 / 6 + epsilon]
  np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-6)


@pytest.mark.parametrize('epsilon', EPSILONS)
def test_slope_of_the_inverse(epsilon):
  points = np.array([3.0, -8.0])
  x = tf.Variable([published_rescale(p, epsilon) for p in points])
  with tf.GradientTape() as tape:
    y = losses.inverse_rescale(x, epsilon)
  # One over the slope of h where it came from.
  expected = 1 / (np.array([1 / 4, 1 / 6]) + epsilon)
  np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-5)


def test_slope_of_the_inverse_at_zero():
  # sign(0) = 0 is a factor, so the gradient is 0.
  x = tf.Variable([0.0])
  with tf.GradientTape() as tape:
    y = losses.inverse_rescale(x, 0.01)
  np.testing.assert_allclose(tape.gradient(y, x), [1 / 0.51], rtol=1e-6)


@pytest.mark.parametrize('shape', [[], [3], [2, 3, 4]])
def test_keeps_the_shape(shape):
  x = tf.ones(shape)
  assert losses.rescale(x, 0.01).shape == shape
  assert losses.inverse_rescale(x, 0.01).shape == shape


@pytest.mark.parametrize('epsilon', [0.0, -1e-3, float('nan')])
@pytest.mark.parametrize('name', ['rescale', 'inverse_rescale'])
def test_epsilon_must_be_positive(epsilon, name):
  with pytest.raises(ValueError, match=r'^epsilon must be positive, got'):
    getattr(losses, name)(tf.ones([1]), epsilon)


@pytest.mark.parametrize('name', ['rescale', 'inverse_rescale'])
def test_compiled_equals_eager(name):
  function = getattr(losses, name)
  x = tf.constant(POINTS)
  np.testing.assert_allclose(
    tf.function(function, jit_compile=True, autograph=False)(x, 1e-3),
    function(x, 1e-3),
    rtol=1e-12,
  )
