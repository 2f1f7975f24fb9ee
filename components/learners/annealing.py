"""Annealing schedules."""

import math

import tensorflow as tf


class LinearAnnealing(tf.Module):
  """Anneals from 1 to 0 over `num_calls` calls, and stays at 0."""

  def __init__(self, num_calls: int | None):
    """Creates the count, a variable of the update.

    Args:
      num_calls: Number of calls until 0; None for a constant 1.
    """
    super().__init__()
    self._num_calls = num_calls
    self._done = tf.Variable(
      0, dtype=tf.int32, trainable=False, name='annealing_calls'
    )

  def __call__(self) -> tf.Tensor:
    """Returns the current value, a float32 in [0, 1], and counts this call."""
    if self._num_calls is None:
      return tf.constant(1.0)
    done = tf.cast(self._done.assign_add(1) - 1, tf.float32)
    return tf.maximum(1 - done / self._num_calls, 0)


class CosineAnnealing(LinearAnnealing):
  """Anneals along a cosine: ½ (1 + cos(π t / N)) after t of N calls.

  It falls slowly at both ends. See https://arxiv.org/abs/1608.03983, equation
  5, without restarts.
  """

  def __call__(self) -> tf.Tensor:
    """Returns the current value, a float32 in [0, 1], and counts this call."""
    return 0.5 * (1 - tf.cos(math.pi * super().__call__()))
