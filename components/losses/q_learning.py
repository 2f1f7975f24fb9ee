"""Huber loss, and importance weights of prioritized replay."""

import tensorflow as tf

from repertory.components.losses import shape_checks


def huber(errors: tf.Tensor, threshold: float) -> tf.Tensor:
  """Huber loss: ½ x² up to the threshold, linear beyond it.

  Args:
    errors: x, of any shape.
    threshold: κ, where the loss becomes linear; also the largest slope.

  Returns:
    The losses, in the shape of `errors`.
  """
  size = tf.abs(errors)
  limited = tf.minimum(size, threshold)
  # Equals ½ m² + κ (|x| − m) with m = min(|x|, κ), whose gradient adds κ to m
  # and subtracts it again: a rounding error for large κ.
  return limited * (size - 0.5 * limited)


def importance_weights(
  probabilities: tf.Tensor,
  table_sizes: tf.Tensor,
  exponent: float | tf.Tensor,
) -> tf.Tensor:
  """Importance weights of prioritized replay, (N P)^-β / max of the batch.

  They correct the bias of prioritized sampling, fully at β = 1. See
  https://arxiv.org/abs/1511.05952, section 3.4.

  Args:
    probabilities: P, the sampling probability of each item, `[B]`.
    table_sizes: N, items in the table at sampling time, integer `[B]`.
    exponent: β, in [0, 1].

  Returns:
    Weights in (0, 1], float32 `[B]`.
  """
  shape_checks.check_ranks(
    probabilities=(probabilities, 1), table_sizes=(table_sizes, 1)
  )
  likelihood = tf.cast(table_sizes, probabilities.dtype) * probabilities
  weights = likelihood ** -tf.cast(exponent, likelihood.dtype)
  return tf.cast(weights / tf.reduce_max(weights), tf.float32)
