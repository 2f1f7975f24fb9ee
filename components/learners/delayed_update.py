"""Parts of an update that run at a lower frequency."""

from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf


class DelayedUpdate(tf.Module):
  """Runs part of an update in every `period`-th call.

  TD3 delays the policy in this way, so that it follows critics which have
  settled: https://arxiv.org/abs/1802.09477, section 5.2. All variables that it
  changes must exist before, optimizers' moments included: `ClippedAdam`'s do.
  """

  def __init__(
    self,
    update: Callable[..., Mapping[str, tf.Tensor]],
    metrics: Sequence[str],
    period: int,
  ):
    """Starts with no calls counted.

    Args:
      update: Changes variables, and returns scalars by name.
      metrics: Names of these scalars.
      period: Number of calls, in learner steps, per update; the first update is
        made in call `period`.

    Raises:
      ValueError: If the period is less than 1.
    """
    super().__init__()
    if period < 1:
      raise ValueError(f'period must be at least 1, got {period}.')
    self._update = update
    self._period = period
    self._num_calls = tf.Variable(0, dtype=tf.int64, trainable=False)
    self._latest = {
      name: tf.Variable(0.0, trainable=False, name=name) for name in metrics
    }

  def __call__(self, *inputs) -> dict[str, tf.Tensor]:
    """Counts the call, and makes the update at the end of a period.

    Args:
      *inputs: Arguments of the update.

    Returns:
      The metrics of its last run, scalars by name; 0 before the first.

    Raises:
      ValueError: If the metrics have unexpected names.
    """
    num_calls = self._num_calls.assign_add(1)

    def make():
      metrics = self._update(*inputs)
      if sorted(metrics) != sorted(self._latest):
        raise ValueError(
          f'The update must return the metrics {sorted(self._latest)}, got '
          f'{sorted(metrics)}.'
        )
      return [tf.cast(metrics[name], tf.float32) for name in self._latest]

    def keep():
      return [variable.read_value() for variable in self._latest.values()]

    current = tf.cond(num_calls % self._period == 0, make, keep)
    for variable, value in zip(self._latest.values(), current):
      variable.assign(value)
    return dict(zip(self._latest, current))
