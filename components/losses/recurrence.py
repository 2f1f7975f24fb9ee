"""Backward linear recurrences in logarithmic time."""

import tensorflow as tf


def backward_recurrence(terms: tf.Tensor, decays: tf.Tensor) -> tf.Tensor:
  """Parallel scan of the recurrence y_t = x_t + a_t y_{t+1} with y_T = 0.

  Each step is an affine map, and affine maps compose. So ⌈log2 T⌉ parallel
  steps replace T sequential ones: see https://doi.org/10.1145/7902.7903, "Data
  parallel algorithms". This avoids the overhead and tracing time of a loop.

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
    # Each entry already sums `reach` entries; add the next `reach` ones.
    terms += decays * _shifted(terms, reach)
    decays *= _shifted(decays, reach)
    reach *= 2
  return terms


def _shifted(values: tf.Tensor, steps: int) -> tf.Tensor:
  """Shifts entries by `steps` towards the start, padding the end with 0."""
  return tf.concat([values[steps:], tf.zeros_like(values[:steps])], axis=0)
