"""Value rescaling h and its inverse (R2D2), for rewards of different scales.

See https://arxiv.org/abs/1805.11593, section 3.2 and proposition A.2. Both
functions stay accurate in float32 near 0, where the paper's formulas subtract
nearly equal numbers.
"""

import tensorflow as tf


def rescale(x: tf.Tensor, epsilon: float) -> tf.Tensor:
  """Value rescaling, h(x) = sign(x) (√(|x| + 1) − 1) + ε x.

  Args:
    x: Values, of any shape.
    epsilon: ε, positive; the inverse's slope is at most 1 / ε.
  """
  _check(epsilon)
  # sign(x) (√(|x| + 1) − 1), multiplied and divided by √(|x| + 1) + 1.
  return x / (tf.sqrt(tf.abs(x) + 1) + 1) + epsilon * x


def inverse_rescale(x: tf.Tensor, epsilon: float) -> tf.Tensor:
  """Inverse of `rescale`, sign(x) (((√(1 + 4ε (|x| + 1 + ε)) − 1) / 2ε)² − 1).

  Args:
    x: Rescaled values, of any shape.
    epsilon: The ε of `rescale`.
  """
  _check(epsilon)
  # With u = √(|h⁻¹| + 1) − 1, |x| = ε u² + (1 + 2ε) u and |h⁻¹| = u² + 2u.
  slope = 1 + 2 * epsilon
  size = tf.abs(x)
  u_per_size = 2 / (slope + tf.sqrt(slope**2 + 4 * epsilon * size))
  u = size * u_per_size
  # sign(x) u (u + 2), with x instead of sign(x), for the slope at 0.
  return x * (u_per_size * (u + 2))


def _check(epsilon: float) -> None:
  if not epsilon > 0:
    raise ValueError(f'epsilon must be positive, got {epsilon}.')
