"""Finding which weight a number falls upon, where weights lie end to end."""

import numpy as np
import tensorflow as tf


def find(sums: tf.Tensor, weights: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
  """Returns the place of the weight that each number falls upon.

  That is the first whose sum is larger than the number. It never is a weight of
  0, whatever rounding does: XLA may add up each sum in an order of its own, so
  that sums differ beside a weight of 0; and a number may reach beyond the last
  sum.

  Args:
    sums: The cumulative sums of the weights, `[..., N]`.
    weights: At least 0, `[..., N]`, in each row one above 0.
    numbers: From 0 to less than a row's last sum, but for rounding, `[...]`.

  Returns:
    int32 `[...]`.
  """
  places = np.arange(weights.shape[-1], dtype=np.int32)
  is_present = weights > 0
  is_beyond = is_present & (sums > numbers[..., None])
  return tf.minimum(
    tf.reduce_min(tf.where(is_beyond, places, len(places)), axis=-1),
    tf.reduce_max(tf.where(is_present, places, 0), axis=-1),
  )
