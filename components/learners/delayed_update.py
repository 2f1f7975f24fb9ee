"""Parts of an update that are made more rarely than others."""

from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf


class DelayedUpdate(tf.Module):
  """Makes a part of an update in every so many-th call.

  As TD3 delays the policy, so that it follows critics which have settled:
  https://arxiv.org/abs/1802.09477, section 5.2. All that it changes must exist
  before, optimizers with their moments included: `ClippedAdam`'s do.
  """

  def __init__(
    self,
    update: Callable[..., Mapping[str, tf.Tensor]],
    metrics: Sequence[str],
    period: int,
  ):
    """Has made none yet.

    Args:
      update: Changes variables, and returns scalars by name.
      metrics: Their names.
      period: Calls from one update to the next, in learner steps; the first
        is made in the call of that number.

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
    """Counts the call, and makes the update when the period is full.

    Args:
      *inputs: What the update is called with.

    Returns:
      What it told last, scalars by name; 0 before it was made.

    Raises:
      ValueError: If it tells other names than was said.
    """
    num_calls = self._num_calls.assign_add(1)

    def make():
      metrics = self._update(*inputs)
      if sorted(metrics) != sorted(self._latest):
        raise ValueError(
          f'The update should tell of {sorted(self._latest)}, it tells of '
          f'{sorted(metrics)}.'
        )
      return [tf.cast(metrics[name], tf.float32) for name in self._latest]

    def keep():
      return [variable.read_value() for variable in self._latest.values()]

    told = tf.cond(num_calls % self._period == 0, make, keep)
    for variable, value in zip(self._latest.values(), told):
      variable.assign(value)
    return dict(zip(self._latest, told))
