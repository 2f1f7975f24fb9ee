"""Target networks."""

from collections.abc import Sequence

import tensorflow as tf


class PeriodicCopy(tf.Module):
  """Copies online variables into target variables every so many calls.

  See https://doi.org/10.1038/nature14236, algorithm 1. The first copy is made
  at construction.
  """

  def __init__(
    self,
    source: Sequence[tf.Variable],
    target: Sequence[tf.Variable],
    period: int,
  ):
    """Makes the first copy.

    Args:
      source: Online variables.
      target: Target variables, of the same shapes in the same order.
      period: Calls between copies, in learner steps.
    """
    super().__init__()
    if period < 1:
      raise ValueError(f'period must be at least 1, got {period}.')
    if [v.shape for v in source] != [v.shape for v in target]:
      raise ValueError(
        'source and target must have the same shapes, got '
        f'{[v.shape for v in source]} and {[v.shape for v in target]}.'
      )
    self._source = list(source)
    self._target = list(target)
    self._period = period
    self._num_calls = tf.Variable(0, dtype=tf.int64, trainable=False)
    self._copy()

  def __call__(self) -> None:
    """Counts the call, and copies when the period is full."""
    num_calls = self._num_calls.assign_add(1)
    if self._period == 1:
      self._copy()
    else:
      tf.cond(num_calls % self._period == 0, self._copy, lambda: None)

  def _copy(self) -> None:
    for source, target in zip(self._source, self._target):
      target.assign(source)
