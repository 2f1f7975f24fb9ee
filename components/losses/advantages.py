"""Generalized advantage estimation (GAE).

Symbols are those of https://arxiv.org/abs/1506.02438, equations 9, 10 and 16.
All sequences are `[T, B]`: entry t is of the step from x_t to x_{t+1}.

A step outside the mask has δ = 0 and propagates nothing backward. So truncated
episodes bootstrap from their last value, and a sequence may hold several
episodes.
"""

from typing import NamedTuple

import tensorflow as tf

from repertory.components.losses import masking, recurrence


class Advantages(NamedTuple):
  """Estimated advantages and value targets, without gradients.

  Attributes:
    advantages: A_t, `[T, B]`; 0 outside the mask.
    targets: A_t + V(x_t), the λ-returns that the values regress onto,
      `[T, B]`; V(x_t) outside the mask.
  """

  advantages: tf.Tensor
  targets: tf.Tensor


def generalized_advantages(
  rewards: tf.Tensor,
  discounts: tf.Tensor,
  values: tf.Tensor,
  bootstrap_value: tf.Tensor,
  mask: tf.Tensor,
  *,
  lambda_: float,
) -> Advantages:
  """GAE(λ): advantages A_t and λ-returns.

  A_t = Σ_{l≥0} (Π_{i<l} λ γ_{t+i}) δ_{t+l}, up to the end of the mask, with
  δ_t = r_t + γ_t V(x_{t+1}) − V(x_t).

  Args:
    rewards: r_t, received after the actions, `[T, B]`.
    discounts: γ_t, 0 where the episode ends in x_{t+1}, `[T, B]`.
    values: V(x_t), `[T, B]`.
    bootstrap_value: V(x_T), `[B]`.
    mask: Bool `[T, B]`, false for padding and for steps from an episode's last
      observation to the first one of the next episode.
    lambda_: λ, in [0, 1]: variance is least at 0, bias at 1.

  Raises:
    ValueError: If a shape or λ is invalid.
  """
  masking.check_shapes(
    rewards=rewards, discounts=discounts, values=values, mask=mask
  )
  masking.check_bootstrap_value(bootstrap_value, values)
  if not 0 <= lambda_ <= 1:
    raise ValueError(f'lambda_ must be in [0, 1], got {lambda_}.')
  zeros = tf.zeros_like(values)
  next_values = tf.concat([values[1:], bootstrap_value[None]], axis=0)  # [T, B]
  errors = rewards + discounts * next_values - values  # [T, B]
  advantages = recurrence.backward_recurrence(
    tf.where(mask, errors, zeros), tf.where(mask, lambda_ * discounts, zeros)
  )  # [T, B]
  targets = advantages + values  # [T, B]
  return Advantages(*map(tf.stop_gradient, (advantages, targets)))
