"""Running standard deviation for scaling rewards."""

import tensorflow as tf

from repertory.components import losses
from repertory.components.networks import moments

# Avoids division by 0 for constant numbers.
_MIN_VARIANCE = 1e-8


class RunningScale(tf.Module):
  """Standard deviation of all numbers so far, such as returns, to divide by.

  Scaled numbers deviate by about 1, whatever their unit. The statistics are
  variables of the update.
  """

  def __init__(self):
    """Starts with a deviation of 1, which the first `update` replaces."""
    super().__init__()
    self._variables = [
      tf.Variable(value, trainable=False, dtype=tf.float64, name=name)
      for name, value in (
        ('count', 0.0),
        ('mean', 0.0),
        ('variance', 1.0),
      )
    ]

  def __call__(self) -> tf.Tensor:
    """Returns the standard deviation, a float32 above 0."""
    _, _, variance = self._variables
    return tf.cast(tf.sqrt(variance + _MIN_VARIANCE), tf.float32)

  def update(self, numbers: tf.Tensor, mask: tf.Tensor) -> None:
    """Adds numbers to the statistics.

    Args:
      numbers: Unscaled, `[T, B]`.
      mask: Bool `[T, B]`, true for valid numbers.
    """
    before = moments.Moments(*self._variables)
    merged = moments.merge(before, moments.of_batch(numbers, mask))
    for variable, value in zip(self._variables, merged):
      variable.assign(value)

  def scale_rewards(
    self,
    rewards: tf.Tensor,
    discounts: tf.Tensor,
    values: tf.Tensor,
    mask: tf.Tensor,
  ) -> tf.Tensor:
    """Updates the statistics with the returns of unrolls, and scales rewards.

    Args:
      rewards: Unscaled rewards, `[T, B]`.
      discounts: With γ, `[T, B]`.
      values: V(x_t), in the previous scale, `[T + 1, B]`.
      mask: Bool `[T, B]`, true for valid steps.

    Returns:
      Rewards divided by the standard deviation, `[T, B]`.
    """
    values = self() * values
    _, returns = losses.generalized_advantages(
      rewards=rewards,
      discounts=discounts,
      values=values[:-1],
      bootstrap_value=values[-1],
      mask=mask,
      lambda_=1.0,
    )
    self.update(returns, mask)
    return rewards / self()
