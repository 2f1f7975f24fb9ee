"""Advantage weights of data set actions (AWR, CRR) and expectile loss (IQL)."""

import math

import tensorflow as tf


def expectile_losses(errors: tf.Tensor, expectile: float) -> tf.Tensor:
  """Expectile loss of IQL, |τ − 1[u < 0]| u².

  Its minimizer is the τ-expectile: the mean for τ = ½, and close to the maximum
  for τ close to 1. See https://arxiv.org/abs/2110.06169,
  equation 4.

  Args:
    errors: u, targets minus predictions, `[...]`.
    expectile: τ, in (0, 1).

  Returns:
    Losses, `[...]`.
  """
  weights = tf.where(errors < 0, 1.0 - expectile, expectile)
  return weights * errors**2


def exponential_weights(
  advantages: tf.Tensor, scale: float, limit: float
) -> tf.Tensor:
  """Exponential advantage weights, min(exp(scale · A), limit).

  Finite even where exp(scale · A) overflows.

  Args:
    advantages: A, `[...]`.
    scale: Inverse temperature.
    limit: The largest weight.
  """
  return tf.exp(tf.minimum(scale * advantages, math.log(limit)))


def binary_weights(advantages: tf.Tensor) -> tf.Tensor:
  """Binary advantage weights of CRR, 1[A > 0].

  Args:
    advantages: A, `[...]`.
  """
  return tf.cast(advantages > 0, advantages.dtype)
