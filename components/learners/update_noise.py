"""Stateless random numbers for updates."""

from collections.abc import Sequence

import tensorflow as tf


class UpdateNoise(tf.Module):
  """Draws random numbers that depend only on a seed and a count.

  Both are variables of the update: a resumed run continues the same random
  stream, and XLA supports stateless random numbers only. The seed is drawn by
  TensorFlow's generator, see `tf.random.set_seed`.
  """

  def __init__(self):
    super().__init__()
    self._seed = tf.Variable(
      tf.random.uniform([], maxval=tf.int32.max, dtype=tf.int32),
      trainable=False,
      name='seed',
    )
    self._num_calls = tf.Variable(
      0, dtype=tf.int32, trainable=False, name='num_calls'
    )

  def seed(self) -> tf.Tensor:
    """Returns a new seed for stateless random operations, int32 `[2]`.

    Its second entry is the number of previous draws.
    """
    return tf.stack([self._seed, self._num_calls.assign_add(1) - 1])

  def normals(self, shape: Sequence[int | tf.Tensor]) -> tf.Tensor:
    """Returns new standard normal numbers, float32."""
    return tf.random.stateless_normal(shape, self.seed())

  def uniforms(self, shape: Sequence[int | tf.Tensor]) -> tf.Tensor:
    """Returns new uniform numbers in [0, 1), float32."""
    return tf.random.stateless_uniform(shape, self.seed())
