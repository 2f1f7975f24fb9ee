"""Linear recurrences backward in time, without a loop over time."""

import tensorflow as tf


def backward_sums(terms: tf.Tensor, decays: tf.Tensor) -> tf.Tensor:
  """Computes y_t = x_t + a_t y_{t+1} with y_T = 0.

  A step of such a recurrence is an affine map, and affine maps compose, so
  ⌈log2 T⌉ steps over all of time take the place of T steps one after the
  other: see https://doi.org/10.1145/7902.7903, "Data parallel algorithms".
  A loop would cost its overhead T times, and its tracing time too.

  Args:
    terms: x, `[T, ...]`, with T known.
    decays: a, `[T, ...]`.

  Returns:
    y, `[T, ...]`.
  """
  length = terms.shape[0]
  if length is None:
    raise ValueError('terms must have a known length, got shape [None, ...].')
  reach = 1
  while reach < length:
    # Each entry takes in the `reach` entries behind those it has already.
    terms += decays * _shifted(terms, reach)
    decays *= _shifted(decays, reach)
    reach *= 2
  return terms


def _shifted(values: tf.Tensor, steps: int) -> tf.Tensor:
  """Returns the entries `steps` later, 0 beyond the end."""
  return tf.concat([values[steps:], tf.zeros_like(values[:steps])], axis=0)
