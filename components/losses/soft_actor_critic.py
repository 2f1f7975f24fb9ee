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
  """Computes r + γ (q(s', a') − α log π(a' | s')), a' drawn from π.

  See equations 3 and 5, and https://arxiv.org/abs/2005.04269, equation 12, for
  values that are quantiles; no gradient flows into it.

  Args:
    r_t: Rewards, `[B]`.
    discount_t: Discounts of the bootstrap value, γ included, `[B]`.
    q_t: What the next state and the action drawn in it are worth: one value, or
      quantiles of it, `[B, M]`.
    log_prob_t: log π of that action, `[B]`.
    temperature: α, a scalar.

  Returns:
    Targets, `[B, M]`.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(r_t=(r_t, 1), discount_t=(discount_t, 1), q_t=(q_t, 2))
  ranks.check_ranks(log_prob_t=(log_prob_t, 1))
  values = q_t - temperature * log_prob_t[:, None]  # [B, M]
  return tf.stop_gradient(r_t[:, None] + discount_t[:, None] * values)


def truncated_quantiles(quantiles: tf.Tensor, num_dropped: int) -> tf.Tensor:
  """Pools the quantiles of several critics and leaves out the largest.

  So the truth is overrated less, and by a measure that can be chosen finely:
  https://arxiv.org/abs/2005.04269, section 3.2.

  Args:
    quantiles: K of each of N critics, `[B, N, K]`.
    num_dropped: Quantiles to leave out for each critic, less than K.

  Returns:
    The others in ascending order, `[B, N (K − num_dropped)]`.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(quantiles=(quantiles, 3))
  number, size = quantiles.shape[1:]
  if not 0 <= num_dropped < size:
    raise ValueError(
      f'num_dropped must be in [0, {size}), for there are {size} quantiles of '
      f'each critic; got {num_dropped}.'
    )
  pooled = tf.reshape(quantiles, [-1, number * size])  # [B, N K]
  return tf.sort(pooled, axis=-1)[:, : number * (size - num_dropped)]


def soft_policy_loss(
  q: tf.Tensor, log_prob: tf.Tensor, temperature: tf.Tensor
) -> tf.Tensor:
  """Computes mean (α log π(a | s) − q(s, a)), a drawn from π.

  Its gradient flows through the action: equations 9 and 10.

  Args:
    q: Values of the action, `[B]`.
    log_prob: log π of the action, `[B]`.
    temperature: α, a scalar; no gradient flows into it.
  """
  ranks.check_ranks(q=(q, 1), log_prob=(log_prob, 1))
  return tf.reduce_mean(tf.stop_gradient(temperature) * log_prob - q)


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
