"""Soft actor-critic (SAC) losses and targets, with those of TQC.

Symbols are those of https://arxiv.org/abs/1812.05905: α is the temperature,
the weight of the entropy relative to rewards.
"""

import tensorflow as tf

from repertory.components.losses import shape_checks


def soft_q_targets(
  r_t: tf.Tensor,
  discount_t: tf.Tensor,
  q_t: tf.Tensor,
  log_prob_t: tf.Tensor,
  temperature: tf.Tensor,
) -> tf.Tensor:
  """SAC targets, r + γ (q(s', a') − α log π(a' | s')) with a' ~ π.

  See equations 3 and 5, and https://arxiv.org/abs/2005.04269, equation 12, for
  quantiles. Rewards, discounts, γ included, and log π are `[B]`; values, one or
  the quantiles of a' in s', `[B, M]`. No gradient flows into the targets,
  `[B, M]`.
  """
  shape_checks.check_ranks(r_t=(r_t, 1), discount_t=(discount_t, 1))
  shape_checks.check_ranks(q_t=(q_t, 2), log_prob_t=(log_prob_t, 1))
  values = q_t - temperature * log_prob_t[:, None]  # [B, M]
  return tf.stop_gradient(r_t[:, None] + discount_t[:, None] * values)


def truncated_quantiles(quantiles: tf.Tensor, num_dropped: int) -> tf.Tensor:
  """TQC: pools the quantiles of all critics and drops the largest.

  See https://arxiv.org/abs/2005.04269, section 3.2. Maps K quantiles of each of
  N critics, `[B, N, K]`, to the others, ascending, `[B, N (K − num_dropped)]`.
  """
  shape_checks.check_ranks(quantiles=(quantiles, 3))
  number, size = quantiles.shape[1:]
  if not 0 <= num_dropped < size:
    raise ValueError(f'num_dropped must be in [0, {size}), got {num_dropped}.')
  pooled = tf.reshape(quantiles, [-1, number * size])  # [B, N K]
  return tf.sort(pooled, axis=-1)[:, : number * (size - num_dropped)]


def soft_policy_loss(
  q: tf.Tensor, log_prob: tf.Tensor, temperature: tf.Tensor
) -> tf.Tensor:
  """SAC policy loss, mean (α log π(a | s) − q(s, a)) with a ~ π.

  The gradient flows through the action, with q and log π `[B]`: equations 9 and
  10. None flows into the temperature.
  """
  shape_checks.check_ranks(q=(q, 1), log_prob=(log_prob, 1))
  return tf.reduce_mean(tf.stop_gradient(temperature) * log_prob - q)


def temperature_loss(
  temperature: tf.Tensor,
  log_prob: tf.Tensor,
  target_entropy: float | tf.Tensor,
) -> tf.Tensor:
  """SAC temperature loss, mean (−α (log π(a | s) + H̄)), equation 18.

  H̄ is the target entropy, a number or `[B]`. No gradient flows into the
  log-probabilities of actions sampled from π, `[B]`.
  """
  shape_checks.check_ranks(log_prob=(log_prob, 1))
  deficit = tf.stop_gradient(log_prob) + target_entropy  # [B]
  return -temperature * tf.reduce_mean(deficit)
