"""Soft actor-critic: reward plus entropy.

Symbols are those of https://arxiv.org/abs/1812.05905: α is the temperature,
what a unit of entropy is worth in units of reward.
"""

import tensorflow as tf

from repertory.components.losses import ranks


def soft_q_targets(
  r_t: tf.Tensor,
  discount_t: tf.Tensor,
  q_t: tf.Tensor,
  log_prob_t: tf.Tensor,
  temperature: tf.Tensor,
) -> tf.Tensor:
  """Computes r + γ (min_i q_i(s', a') − α log π(a' | s')), a' drawn from π.

  See equations 3 and 5; no gradient flows into it.

  Args:
    r_t: Rewards, `[B]`.
    discount_t: Discounts of the bootstrap value, γ included, `[B]`.
    q_t: Values of the next state and of the action drawn in it, by each of N
      target critics, `[B, N]`.
    log_prob_t: log π of that action, `[B]`.
    temperature: α, a scalar.

  Returns:
    Targets, `[B]`.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(r_t=(r_t, 1), discount_t=(discount_t, 1), q_t=(q_t, 2))
  ranks.check_ranks(log_prob_t=(log_prob_t, 1))
  value = tf.reduce_min(q_t, axis=-1) - temperature * log_prob_t  # [B]
  return tf.stop_gradient(r_t + discount_t * value)  # [B]


def soft_policy_loss(
  q: tf.Tensor, log_prob: tf.Tensor, temperature: tf.Tensor
) -> tf.Tensor:
  """Computes mean (α log π(a | s) − min_i q_i(s, a)), a drawn from π.

  Its gradient flows through the action: equations 9 and 10.

  Args:
    q: Values of the action, by each of N critics, `[B, N]`.
    log_prob: log π of the action, `[B]`.
    temperature: α, a scalar; no gradient flows into it.
  """
  ranks.check_ranks(q=(q, 2), log_prob=(log_prob, 1))
  price = tf.stop_gradient(temperature) * log_prob  # [B]
  return tf.reduce_mean(price - tf.reduce_min(q, axis=-1))


def temperature_loss(
  temperature: tf.Tensor, log_prob: tf.Tensor, target_entropy: float
) -> tf.Tensor:
  """Computes mean (−α (log π(a | s) + H̄)): equation 18.

  Lowering it raises α where the policy's entropy is below its target.

  Args:
    temperature: α, a scalar.
    log_prob: log π of actions drawn from π, `[B]`; no gradient flows into it.
    target_entropy: H̄.
  """
  ranks.check_ranks(log_prob=(log_prob, 1))
  lack = tf.stop_gradient(log_prob) + target_entropy  # [B]
  return -temperature * tf.reduce_mean(lack)
