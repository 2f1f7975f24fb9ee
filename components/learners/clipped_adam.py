"""The optimizer of all agents."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf


class ClippedAdam(tf.Module):
  """Adam on gradients whose global norm is limited.

  See https://arxiv.org/abs/1412.6980, and for the limit section 3.2 of
  https://arxiv.org/abs/1211.5063.
  """

  def __init__(
    self,
    learning_rate: float | tf.Variable,
    epsilon: float,
    max_norm: float | None,
  ):
    """Makes no variables: the first step does.

    Args:
      learning_rate: α; a variable if it changes.
      epsilon: ε, added to the denominator.
      max_norm: Gradients of a larger global norm are scaled down to it; None
        leaves them as they are.
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
    gradients = tape.gradient(loss, variables)
    norm = tf.linalg.global_norm(gradients)
    if self._max_norm is not None:
      gradients, _ = tf.clip_by_global_norm(gradients, self._max_norm, norm)
    self._adam.apply(gradients, variables)
    return norm
