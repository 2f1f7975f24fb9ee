"""Action values that put what was demonstrated above all else."""

import tensorflow as tf

from repertory.components.losses import ranks


def large_margin_gaps(
  q: tf.Tensor, a_demonstrated: tf.Tensor, margin: float
) -> tf.Tensor:
  """Computes max_a (q(s, a) + l(a_E, a)) − q(s, a_E), l = margin if a ≠ a_E.

  It is 0 where what was demonstrated is better than all else by the margin, and
  tells nothing then. So what the data never show gets a value, below theirs.

  See https://arxiv.org/abs/1704.03732, equation 2.

  Args:
    q: Values, `[B, A]`.
    a_demonstrated: a_E, what was done, integer `[B]`.
    margin: At least 0.

  Returns:
    The gaps, `[B]`, at least 0.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(q=(q, 2), a_demonstrated=(a_demonstrated, 1))
  # A gather takes no small or unsigned integers.
  a_demonstrated = tf.cast(a_demonstrated, tf.int32)
  margins = tf.one_hot(a_demonstrated, q.shape[1], 0.0, margin, dtype=q.dtype)
  best = tf.reduce_max(q + margins, axis=-1)  # [B]
  return best - tf.gather(q, a_demonstrated, batch_dims=1)
