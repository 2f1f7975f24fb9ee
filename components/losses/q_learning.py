"""Q-learning: TD losses, targets, and regularizers (TD3, CQL, DQfD, M-DQN)."""

import math

import tensorflow as tf

from repertory.components.losses import shape_checks


def huber(errors: tf.Tensor, threshold: float) -> tf.Tensor:
  """Huber loss of errors x of any shape: ½ x² up to the threshold, then linear.

  The threshold κ is also the largest slope.
  """
  size = tf.abs(errors)
  limited = tf.minimum(size, threshold)
  # Equals ½ m² + κ (|x| − m) with m = min(|x|, κ), whose gradient adds κ to m
  # and subtracts it again: a rounding error for large κ.
  return limited * (size - 0.5 * limited)


def importance_weights(
  probabilities: tf.Tensor,
  table_sizes: tf.Tensor,
  exponent: float | tf.Tensor,
) -> tf.Tensor:
  """Importance weights of prioritized replay, (N P)^-β / max of the batch.

  They correct the bias of prioritized sampling, fully at β = 1. See
  https://arxiv.org/abs/1511.05952, section 3.4. Sampling probabilities P and
  sizes N of the table, integer, are `[B]`; weights, in (0, 1], float32 `[B]`.
  """
  shape_checks.check_ranks(
    probabilities=(probabilities, 1), table_sizes=(table_sizes, 1)
  )
  likelihood = tf.cast(table_sizes, probabilities.dtype) * probabilities
  weights = likelihood ** -tf.cast(exponent, likelihood.dtype)
  return tf.cast(weights / tf.reduce_max(weights), tf.float32)


def clipped_double_q_targets(
  r_t: tf.Tensor, discount_t: tf.Tensor, q_t: tf.Tensor
) -> tf.Tensor:
  """Clipped double Q-learning targets of TD3, r + γ min_i q_i(s', a').

  The minimum reduces overestimation: https://arxiv.org/abs/1802.09477,
  equation 10. Rewards and discounts, γ included, are `[B]`, values of N target
  critics `[B, N]`. No gradient flows into the targets, `[B]`.
  """
  shape_checks.check_ranks(
    r_t=(r_t, 1), discount_t=(discount_t, 1), q_t=(q_t, 2)
  )
  value = tf.reduce_min(q_t, axis=-1)  # [B]
  return tf.stop_gradient(r_t + discount_t * value)  # [B]


def conservative_q_loss(
  q_proposed: tf.Tensor, log_prob: tf.Tensor, q_data: tf.Tensor
) -> tf.Tensor:
  """CQL regularizer, log ∫ exp(q(s, a)) da − q(s, a_data), from samples.

    log (1/P Σ_p exp(q(s, a_p)) / μ(a_p)) − q(s, a_data),  a_p ~ μ

  See https://arxiv.org/abs/2006.04779, equation 4 and appendix F. Values of P
  actions and their log μ are `[B, P]`, the latter −log P if these are all
  discrete actions; values of the data set's actions are `[B]`.
  """
  shape_checks.check_ranks(q_proposed=(q_proposed, 2), log_prob=(log_prob, 2))
  shape_checks.check_ranks(q_data=(q_data, 1))
  weighted = tf.reduce_logsumexp(q_proposed - log_prob, axis=-1)  # [B]
  return weighted - math.log(q_proposed.shape[1]) - q_data


def large_margin_loss(
  q: tf.Tensor, a_demonstrated: tf.Tensor, margin: float
) -> tf.Tensor:
  """DQfD loss, max_a (q(s, a) + l(a_E, a)) − q(s, a_E), l = margin if a ≠ a_E.

  See https://arxiv.org/abs/1704.03732, equation 2. Values are `[B, A]`, a_E is
  an integer `[B]`.
  """
  shape_checks.check_ranks(q=(q, 2), a_demonstrated=(a_demonstrated, 1))
  # tf.gather does not support small or unsigned integers.
  a_demonstrated = tf.cast(a_demonstrated, tf.int32)
  margins = tf.one_hot(a_demonstrated, q.shape[1], 0.0, margin, dtype=q.dtype)
  best = tf.reduce_max(q + margins, axis=-1)  # [B]
  return best - tf.gather(q, a_demonstrated, batch_dims=1)


def scaled_log_policy(q: tf.Tensor, temperature: float) -> tf.Tensor:
  """Scaled log-policy of M-DQN, τ log π(a | s) with π = softmax(q / τ).

  The largest value is subtracted before the division by τ, to keep small
  differences of large values. Values and results are `[B, A]`.
  """
  shape_checks.check_ranks(q=(q, 2))
  below_best = q - tf.reduce_max(q, axis=-1, keepdims=True)  # [B, A]
  return temperature * tf.nn.log_softmax(below_best / temperature)


def munchausen_bonus(
  q_tm1: tf.Tensor,
  a_tm1: tf.Tensor,
  alpha: float,
  temperature: float,
  clip: float,
) -> tf.Tensor:
  """Munchausen bonus of M-DQN, α [τ log π(a | s)] clipped to [l_0, 0].

  It is added to rewards: https://arxiv.org/abs/2007.14430, section 2. Values of
  the target network in the first state are `[B, A]`, actions taken in it
  integers `[B]`; `clip` is l_0. No gradient flows into the bonus, `[B]`.
  """
  shape_checks.check_ranks(q_tm1=(q_tm1, 2), a_tm1=(a_tm1, 1))
  scaled = scaled_log_policy(q_tm1, temperature)  # [B, A]
  # tf.gather does not support small or unsigned integers.
  a_tm1 = tf.cast(a_tm1, tf.int32)
  taken = tf.gather(scaled, a_tm1, batch_dims=1)  # [B]
  return tf.stop_gradient(alpha * tf.clip_by_value(taken, clip, 0.0))


def clip_rewards(rewards: tf.Tensor, max_abs: float | None) -> tf.Tensor:
  """Clips rewards to ± `max_abs`, if not None (doi:10.1038/nature14236)."""
  if max_abs is None:
    return rewards
  return tf.clip_by_value(rewards, -max_abs, max_abs)
