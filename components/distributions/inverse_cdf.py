"""Inverse transform sampling from cumulative sums of weights."""

import numpy as np
import tensorflow as tf


def find(sums: tf.Tensor, weights: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
  """Returns the index of the weight whose interval contains each number.

  That is the first whose cumulative sum exceeds the number. It is never a
  weight of 0, despite rounding: XLA may add up each sum in another order, so
  that sums differ next to a weight of 0, and a number may exceed the last sum.

  Weights, at least one positive per row, and their sums are `[..., N]`; numbers
  from 0 to below the last sum, up to rounding, and indices, int32, `[...]`.
  """
  places = np.arange(weights.shape[-1], dtype=np.int32)
  is_present = weights > 0
  is_beyond = is_present & (sums > numbers[..., None])
  return tf.minimum(
    tf.reduce_min(tf.where(is_beyond, places, len(places)), axis=-1),
    tf.reduce_max(tf.where(is_present, places, 0), axis=-1),
  )
