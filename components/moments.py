"""Mean and variance of what comes in batches."""

from typing import NamedTuple

import tensorflow as tf


class Moments(NamedTuple):
  """Mean and variance of so many numbers.

  In double precision, for after 10⁷ numbers another one would be lost.

  Attributes:
    size: How many there were, a scalar.
    mean: `[...]`.
    variance: Mean square of the differences from the mean, `[...]`.
  """

  size: tf.Tensor | tf.Variable
  mean: tf.Tensor | tf.Variable
  variance: tf.Tensor | tf.Variable


def of_batch(leaf: tf.Tensor, mask: tf.Tensor) -> Moments:
  """Computes those of a batch; zeros if none of it counts.

  Args:
    leaf: `[T, B, ...]`.
    mask: Bool `[T, B]`: what counts.
  """
  x = tf.cast(leaf, tf.float64)
  mask = tf.reshape(mask, [*mask.shape, *[1] * (len(x.shape) - 2)])
  count = tf.reduce_sum(tf.cast(mask, tf.float64))
  divisor = tf.maximum(count, 1)
  zeros = tf.zeros_like(x)
  mean = tf.reduce_sum(tf.where(mask, x, zeros), axis=[0, 1]) / divisor
  squares = tf.where(mask, (x - mean) ** 2, zeros)
  variance = tf.reduce_sum(squares, axis=[0, 1]) / divisor
  return Moments(count, mean, variance)


def merge(before: Moments, new: Moments) -> Moments:
  """Computes those of two sets of numbers together.

  For n and m numbers whose means are δ apart they are μ_n + δ m / (n + m) and
  (n σ²_n + m σ²_m + δ² n m / (n + m)) / (n + m): see Chan et al.,
  https://doi.org/10.1080/00031305.1983.10483115, equation 2.1. Nothing new
  changes nothing.
  """
  total = tf.maximum(before.size + new.size, 1)
  gap = new.mean - before.mean
  merged = (
    before.size * before.variance
    + new.size * new.variance
    + gap**2 * before.size * new.size / total
  ) / total
  return Moments(
    before.size + new.size,
    before.mean + gap * new.size / total,
    tf.where(new.size > 0, merged, before.variance),
  )
