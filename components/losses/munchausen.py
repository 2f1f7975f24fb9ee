"""Munchausen reinforcement learning: rewards for what the policy is sure of.

The policy is π = softmax(q / τ) with a temperature τ: see
https://arxiv.org/abs/2007.14430.
"""

import tensorflow as tf

from repertory.components.losses import ranks


def scaled_log_policy(q: tf.Tensor, temperature: float) -> tf.Tensor:
  """Computes τ log π(a | s) of π = softmax(q / τ).

  The largest value is taken away before the division by τ, or small
  differences of large values would be lost.

  Args:
    q: Values, `[B, A]`.
    temperature: τ, above 0.

  Returns:
    At most 0, `[B, A]`.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(q=(q, 2))
  below_best = q - tf.reduce_max(q, axis=-1, keepdims=True)  # [B, A]
  return temperature * tf.nn.log_softmax(below_best / temperature)


def munchausen_bonus(
  q_tm1: tf.Tensor,
  a_tm1: tf.Tensor,
  alpha: float,
  temperature: float,
  clip: float,
) -> tf.Tensor:
  """Computes α [τ log π(a | s)] limited to [l_0, 0], to be added to rewards.

  It is what the target of M-DQN has beside the reward, and the limit keeps it
  from growing without end: section 2. No gradient flows into it.

  Args:
    q_tm1: Values of the state acted in, by the target network, `[B, A]`.
    a_tm1: Actions taken in it, integer `[B]`.
    alpha: α, in [0, 1].
    temperature: τ, above 0.
    clip: l_0, at most 0.

  Returns:
    From α l_0 to 0, `[B]`.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(q_tm1=(q_tm1, 2), a_tm1=(a_tm1, 1))
  scaled = scaled_log_policy(q_tm1, temperature)  # [B, A]
  # A gather takes no small or unsigned integers.
  a_tm1 = tf.cast(a_tm1, tf.int32)
  taken = tf.gather(scaled, a_tm1, batch_dims=1)  # [B]
  return tf.stop_gradient(alpha * tf.clip_by_value(taken, clip, 0.0))
