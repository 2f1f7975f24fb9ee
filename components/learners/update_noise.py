"""Random numbers inside an update."""

from collections.abc import Sequence

import tensorflow as tf


class UpdateNoise(tf.Module):
  """Draws numbers that depend on nothing but a seed and a count.

  Both are variables of the update: a run that is resumed goes on with the
  numbers that it would have drawn, and XLA takes no other random numbers than
  stateless ones. The seed follows from `tf.random.set_seed`.
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
    """Returns a new seed of stateless random operations, int32 `[2]`.

    Its second entry is how many numbers or seeds were drawn before.
    """
    return tf.stack([self._seed, self._num_calls.assign_add(1) - 1])

  def normals(self, shape: Sequence[int | tf.Tensor]) -> tf.Tensor:
    """Returns new numbers of mean 0 and deviation 1, float32."""
    return tf.random.stateless_normal(shape, self.seed())

  def uniforms(self, shape: Sequence[int | tf.Tensor]) -> tf.Tensor:
    """Returns new numbers in [0, 1), all as probable, float32."""
    return tf.random.stateless_uniform(shape, self.seed())
