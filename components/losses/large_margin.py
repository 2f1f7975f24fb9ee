"""Large-margin imitation loss of DQfD."""

import tensorflow as tf

from repertory.components.losses import shape_checks


def large_margin_loss(
  q: tf.Tensor, a_demonstrated: tf.Tensor, margin: float
) -> tf.Tensor:
  """DQfD loss, max_a (q(s, a) + l(a_E, a)) − q(s, a_E), l = margin if a ≠ a_E.

  It is 0 where the demonstrated action exceeds all others by the margin. So it
  grounds the values of actions that are not in the data set, below those that
  are.

  See https://arxiv.org/abs/1704.03732, equation 2.

  Args:
    q: Action values, `[B, A]`.
    a_demonstrated: a_E, demonstrated actions, integer `[B]`.
    margin: At least 0.

  Returns:
    Losses, `[B]`, at least 0.

  Raises:
    ValueError: If a shape is invalid.
  """
  shape_checks.check_ranks(q=(q, 2), a_demonstrated=(a_demonstrated, 1))
  # tf.gather does not support small or unsigned integers.
  a_demonstrated = tf.cast(a_demonstrated, tf.int32)
  margins = tf.one_hot(a_demonstrated, q.shape[1], 0.0, margin, dtype=q.dtype)
  best = tf.reduce_max(q + margins, axis=-1)  # [B]
  return best - tf.gather(q, a_demonstrated, batch_dims=1)
