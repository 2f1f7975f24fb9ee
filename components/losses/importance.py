"""Importance sampling ratios π/μ."""

import tensorflow as tf

from repertory.components.losses import masking

# e^20 is 5e8, whose products and sums stay finite.
_MAX_LOG_RATIO = 20.0


def importance_ratios(
  target_log_probs: tf.Tensor, behavior_log_probs: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Importance sampling ratios π(a_t | x_t) / μ(a_t | x_t), `[T, B]`.

  Ratios are 1 outside the mask. They are clipped at e^20, without a gradient,
  so that a single improbable action cannot make a mean infinite.

  Args:
    target_log_probs: log π(a_t | x_t), of the learned policy, `[T, B]`.
    behavior_log_probs: log μ(a_t | x_t), of the behavior policy, `[T, B]`.
    mask: Bool `[T, B]`.
  """
  masking.check_shapes(
    target_log_probs=target_log_probs,
    behavior_log_probs=behavior_log_probs,
    mask=mask,
  )
  # Masked before the exponential: its gradient would be 0 · ∞.
  differences = target_log_probs - behavior_log_probs
  differences = tf.where(mask, differences, tf.zeros_like(differences))
  return tf.exp(tf.minimum(differences, _MAX_LOG_RATIO))
