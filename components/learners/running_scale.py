"""How far numbers are apart."""

import tensorflow as tf

from repertory.components import losses, moments

# Keeps what is always the same from being divided by 0.
_MIN_VARIANCE = 1e-8


class RunningScale(tf.Module):
  """The deviation of all numbers so far, such as returns, to divide by.

  What is divided deviates by about 1, whatever its unit. What is known of them
  are variables of the update.
  """

  def __init__(self):
    """Begins with a deviation of 1, which the first `update` replaces."""
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
    """Returns the deviation, a float32 above 0."""
    _, _, variance = self._variables
    return tf.cast(tf.sqrt(variance + _MIN_VARIANCE), tf.float32)

  def update(self, numbers: tf.Tensor, mask: tf.Tensor) -> None:
    """Takes numbers in.

    Args:
      numbers: As they are, `[T, B]`.
      mask: Bool `[T, B]`: which of them count.
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
    """Takes in the returns of unrolls, then scales their rewards.

    Args:
      rewards: As the environment gave them, `[T, B]`.
      discounts: With γ, `[T, B]`.
      values: V(x_t), of rewards as they were scaled up to now, `[T + 1, B]`.
      mask: Bool `[T, B]`: which steps happened.

    Returns:
      Rewards divided by the deviation, `[T, B]`.
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
