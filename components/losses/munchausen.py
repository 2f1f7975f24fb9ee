"""Munchausen RL (M-DQN): scaled log-policy bonus.

The policy is π = softmax(q / τ) with a temperature τ: see
https://arxiv.org/abs/2007.14430.
"""

import tensorflow as tf

from repertory.components.losses import shape_checks


def scaled_log_policy(q: tf.Tensor, temperature: float) -> tf.Tensor:
  """Scaled log-policy of M-DQN, τ log π(a | s) with π = softmax(q / τ).

  The largest value is subtracted before the division by τ, to keep small
  differences of large values.

  Args:
    q: Values, `[B, A]`.
    temperature: τ, above 0.

  Returns:
    τ log π, at most 0, `[B, A]`.

  Raises:
    ValueError: If a shape is invalid.
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

  It is added to rewards; see section 2. No gradient flows into it.

  Args:
    q_tm1: Target network's values of the first state, `[B, A]`.
    a_tm1: Actions taken in it, integer `[B]`.
    alpha: α, in [0, 1].
    temperature: τ, above 0.
    clip: l_0, at most 0.

  Returns:
    Bonuses in [α l_0, 0], `[B]`.

  Raises:
    ValueError: If a shape is invalid.
  """
  shape_checks.check_ranks(q_tm1=(q_tm1, 2), a_tm1=(a_tm1, 1))
  scaled = scaled_log_policy(q_tm1, temperature)  # [B, A]
  # tf.gather does not support small or unsigned integers.
  a_tm1 = tf.cast(a_tm1, tf.int32)
  taken = tf.gather(scaled, a_tm1, batch_dims=1)  # [B]
  return tf.stop_gradient(alpha * tf.clip_by_value(taken, clip, 0.0))
