"""Clipped double Q-learning (TD3)."""

import tensorflow as tf

from repertory.components.losses import shape_checks


def clipped_double_q_targets(
  r_t: tf.Tensor, discount_t: tf.Tensor, q_t: tf.Tensor
) -> tf.Tensor:
  """Clipped double Q-learning targets of TD3, r + γ min_i q_i(s', a').

  The minimum reduces overestimation: https://arxiv.org/abs/1802.09477,
  equation 10. No gradient flows into the targets.

  Args:
    r_t: Rewards, `[B]`.
    discount_t: Discounts of the bootstrap value, γ included, `[B]`.
    q_t: Values of the next state and its chosen action from N target critics,
      `[B, N]`.

  Returns:
    Targets, `[B]`.

  Raises:
    ValueError: If a shape is invalid.
  """
  shape_checks.check_ranks(
    r_t=(r_t, 1), discount_t=(discount_t, 1), q_t=(q_t, 2)
  )
  value = tf.reduce_min(q_t, axis=-1)  # [B]
  return tf.stop_gradient(r_t + discount_t * value)  # [B]
