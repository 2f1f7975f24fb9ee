"""Running mean and variance of batches."""

from typing import NamedTuple

import tensorflow as tf


class Moments(NamedTuple):
  """Mean and variance of a set of numbers.

  In double precision: after 10⁷ numbers, single precision would lose the next
  one.

  Attributes:
    size: Number of values, a scalar.
    mean: `[...]`.
    variance: Mean squared deviation from the mean, `[...]`.
  """

  size: tf.Tensor | tf.Variable
  mean: tf.Tensor | tf.Variable
  variance: tf.Tensor | tf.Variable


def of_batch(leaf: tf.Tensor, mask: tf.Tensor) -> Moments:
  """Computes the moments of a batch; zeros if it is fully masked.

  Args:
    leaf: `[T, B, ...]`.
    mask: Bool `[T, B]`, true for valid entries.
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
  """Merges the moments of two disjoint sets of numbers.

  For n and m numbers whose means are δ apart, the mean is μ_n + δ m / (n + m)
  and the variance (n σ²_n + m σ²_m + δ² n m / (n + m)) / (n + m): see Chan et
  al., https://doi.org/10.1080/00031305.1983.10483115, equation 2.1. An empty
  second set changes nothing.
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
