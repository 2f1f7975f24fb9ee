"""The optimizer of all agents."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf


class ClippedAdam(tf.Module):
  """Adam on gradients whose global norm is limited.

  See https://arxiv.org/abs/1412.6980, and for the limit section 3.2 of
  https://arxiv.org/abs/1211.5063.
  """

  def __init__(self, learning_rate: float, epsilon: float, max_norm: float):
    """Makes no variables: the first step does.

    Args:
      learning_rate: α.
      epsilon: ε, added to the denominator.
      max_norm: Gradients of a larger global norm are scaled down to it.
    """
    super().__init__()
    self._adam = snt.optimizers.Adam(learning_rate, epsilon=epsilon)
    self._max_norm = max_norm

  def minimize(
    self,
    tape: tf.GradientTape,
    loss: tf.Tensor,
    variables: Sequence[tf.Variable],
  ) -> tf.Tensor:
    """Takes a step and returns the global norm before it was limited.

    Args:
      tape: Recorded how the loss came from the variables.
      loss: A scalar.
      variables: The same in each call.
    """
    gradients, norm = tf.clip_by_global_norm(
      tape.gradient(loss, variables), self._max_norm
    )
    self._adam.apply(gradients, variables)
    return norm
