"""Losses of actor-critic agents: policy gradient, entropy and value loss.

All are masked means, so they do not depend on the amount of padding.
"""

import tensorflow as tf

from repertory.components.losses import masking


def policy_gradient_loss(
  log_probs: tf.Tensor, advantages: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Policy gradient loss (REINFORCE), −mean log π(a_t | x_t) A_t.

  Its gradient estimates that of the negative expected return
  (https://doi.org/10.1007/BF00992696). No gradient flows into the advantages.

  Args:
    log_probs: log π(a_t | x_t), `[T, B]`.
    advantages: A_t, `[T, B]`.
    mask: Bool `[T, B]`.
  """
  masking.check_shapes(log_probs=log_probs, advantages=advantages, mask=mask)
  # Masked before the product, too, because 0 · ∞ is not 0.
  advantages = tf.where(mask, advantages, tf.zeros_like(advantages))
  return -masking.masked_mean(log_probs * tf.stop_gradient(advantages), mask)


def entropy_loss(entropies: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Entropy loss, −mean H(π(· | x_t)), against premature convergence.

  See https://arxiv.org/abs/1602.01783, section 4.

  Args:
    entropies: H, `[T, B]`.
    mask: Bool `[T, B]`.
  """
  masking.check_shapes(entropies=entropies, mask=mask)
  return -masking.masked_mean(entropies, mask)


def value_loss(
  values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Value loss, mean ½ (v_t − V(x_t))²; no gradient flows into the targets.

  Args:
    values: V(x_t), `[T, B]`.
    targets: v_t, `[T, B]`.
    mask: Bool `[T, B]`.
  """
  masking.check_shapes(values=values, targets=targets, mask=mask)
  errors = tf.stop_gradient(targets) - values
  errors = tf.where(mask, errors, tf.zeros_like(errors))
  return masking.masked_mean(0.5 * errors**2, mask)
