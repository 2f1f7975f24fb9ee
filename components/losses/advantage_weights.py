"""How much an action of data counts, by its advantage."""

import math

import tensorflow as tf


def expectile_losses(errors: tf.Tensor, expectile: float) -> tf.Tensor:
  """Computes |τ − 1[u < 0]| u².

  Its mean is least at an expectile: for τ = ½ the mean, and nearer to the
  largest value the nearer τ is to 1. See https://arxiv.org/abs/2110.06169,
  equation 4.

  Args:
    errors: u, what is aimed at less what was said, `[...]`.
    expectile: τ, in (0, 1).

  Returns:
    Losses, `[...]`.
  """
  weights = tf.where(errors < 0, 1.0 - expectile, expectile)
  return weights * errors**2


def exponential_weights(
  advantages: tf.Tensor, scale: float, limit: float
) -> tf.Tensor:
  """Computes min(exp(scale · A), limit), also where the power is infinite.

  Args:
    advantages: A, `[...]`.
    scale: What a unit of advantage counts for.
    limit: The largest weight.
  """
  return tf.exp(tf.minimum(scale * advantages, math.log(limit)))


def binary_weights(advantages: tf.Tensor) -> tf.Tensor:
  """Computes 1[A > 0], which forgets what was worse than usual.

  Args:
    advantages: A, `[...]`.
  """
  return tf.cast(advantages > 0, advantages.dtype)
