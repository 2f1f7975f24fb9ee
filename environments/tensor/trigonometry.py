"""Sine and cosine with bit-identical results in every row.

TensorFlow's kernels compute eight rows at once and the remaining ones singly,
by another method: a row's result depends on the number of rows. Sums and
products do not.

Graph optimization also rewrites expressions. TensorFlow replaces a division by
a constant with a multiplication, c (x y) with c x y or the reverse, and
reorders sums of many terms. Equations that give the same results with and
without a graph, and in every graph, therefore have at most one constant and one
other factor in a product, unless its parts are used elsewhere; no division by
constants; and few terms in a sum.
"""

import math

import tensorflow as tf

# Taylor series of θ², up to θ⁹ and θ¹⁰: the first omitted terms are 1e-9 and
# 1e-10 at π / 4, far below the float32 resolution of 6e-8.
_SINE = [(-1) ** i / math.factorial(2 * i + 1) for i in range(5)]
_COSINE = [(-1) ** i / math.factorial(2 * i) for i in range(6)]

# π / 2 in two parts; the first has so few bits that small multiples are exact.
_QUARTER = 1.5703125
_QUARTER_REST = math.pi / 2 - _QUARTER


def sine_and_cosine_of_small(angle: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns sin θ and cos θ, within 1e-7.

  Args:
    angle: θ in [-π / 4, π / 4], float32.
  """
  square = angle * angle
  return angle * _evaluate(_SINE, square), _evaluate(_COSINE, square)


def sine_and_cosine(angle: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns sin θ and cos θ, within 1e-7.

  Args:
    angle: θ in [-2 π, 2 π], float32.
  """
  quarters = tf.round(angle * (2 / math.pi))
  rest = angle - quarters * _QUARTER - quarters * _QUARTER_REST
  sine, cosine = sine_and_cosine_of_small(rest)
  # sin(x + π / 2) = cos x and cos(x + π / 2) = -sin x.
  turned = tf.cast(quarters, tf.int32)
  is_odd = tf.equal(turned & 1, 1)
  sine, cosine = tf.where(is_odd, cosine, sine), tf.where(is_odd, -sine, cosine)
  is_half = tf.equal(turned & 2, 2)
  return tf.where(is_half, -sine, sine), tf.where(is_half, -cosine, cosine)


def _evaluate(coefficients: list[float], x: tf.Tensor) -> tf.Tensor:
  """Returns Σ_i c_i x^i by Horner's rule."""
  value = coefficients[-1] * x
  for coefficient in coefficients[-2:0:-1]:
    value = (value + coefficient) * x
  return value + coefficients[0]
