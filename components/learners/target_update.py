"""Target network updates."""

from collections.abc import Sequence

import tensorflow as tf


class PeriodicCopy(tf.Module):
  """Copies online variables into target variables every `period` calls.

  See https://doi.org/10.1038/nature14236, algorithm 1. The first copy is made
  at construction.
  """

  def __init__(
    self,
    source: Sequence[tf.Variable | tf.Module],
    target: Sequence[tf.Variable | tf.Module],
    period: int,
  ):
    """Makes the first copy.

    Args:
      source: Online variables, or modules with all of theirs.
      target: Target variables, of the same shapes in the same order.
      period: Calls between copies, in learner steps.
    """
    super().__init__()
    if period < 1:
      raise ValueError(f'period must be at least 1, got {period}.')
    self._source, self._target = _pair(source, target)
    self._period = period
    self._num_calls = tf.Variable(0, dtype=tf.int64, trainable=False)
    self._copy()

  def __call__(self) -> None:
    """Counts the call, and copies at the end of a period."""
    num_calls = self._num_calls.assign_add(1)
    if self._period == 1:
      self._copy()
    else:
      tf.cond(num_calls % self._period == 0, self._copy, lambda: None)

  def _copy(self) -> None:
    for source, target in zip(self._source, self._target):
      target.assign(source)


class SoftUpdate(tf.Module):
  """Moves target variables towards the online ones (Polyak averaging).

  θ⁻ ← θ⁻ + τ (θ − θ⁻) in every call, see https://arxiv.org/abs/1509.02971,
  algorithm 1. They are made equal at construction.
  """

  def __init__(
    self,
    source: Sequence[tf.Variable | tf.Module],
    target: Sequence[tf.Variable | tf.Module],
    rate: float,
  ):
    """Makes the variables equal.

    Args:
      source: Online variables, θ, or modules with all of theirs.
      target: Target variables, θ⁻, of the same shapes in the same order.
      rate: τ, in (0, 1].
    """
    super().__init__()
    if not 0 < rate <= 1:
      raise ValueError(f'rate must be in (0, 1], got {rate}.')
    self._source, self._target = _pair(source, target)
    self._rate = rate
    for online, follower in zip(self._source, self._target):
      follower.assign(online)

  def __call__(self) -> None:
    """Moves the target variables."""
    for source, target in zip(self._source, self._target):
      target.assign_add(self._rate * (source - target))


def _pair(
  source: Sequence[tf.Variable | tf.Module],
  target: Sequence[tf.Variable | tf.Module],
) -> tuple[list[tf.Variable], list[tf.Variable]]:
  """Returns the variables of both; raises ValueError if shapes differ."""
  online, followers = _variables(source), _variables(target)
  if [v.shape for v in online] != [v.shape for v in followers]:
    raise ValueError(
      'source and target must have the same shapes, got '
      f'{[v.shape for v in online]} and {[v.shape for v in followers]}.'
    )
  return online, followers


def _variables(
  holders: Sequence[tf.Variable | tf.Module],
) -> list[tf.Variable]:
  variables = []
  for one in holders:
    variables += one.variables if isinstance(one, tf.Module) else [one]
  return variables
