"""How much likelier an action is now than when it was taken."""

import tensorflow as tf

from repertory.components.losses import masking

# e^20 is 500 million: its products and sums are finite.
_MAX_LOG_RATIO = 20.0


def importance_ratios(
  target_log_probs: tf.Tensor, behavior_log_probs: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Computes π(a_t | x_t) / μ(a_t | x_t), `[T, B]`; 1 outside the mask.

  Ratios are at most e^20, and have no gradient there: so one action that a
  narrow density made next to impossible does not make a mean infinite.

  Args:
    target_log_probs: log π(a_t | x_t), of the policy that learns, `[T, B]`.
    behavior_log_probs: log μ(a_t | x_t), of the one that acted, `[T, B]`.
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
