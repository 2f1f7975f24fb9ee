"""Q-learning: double Q-learning errors, Huber loss and importance weights.

Symbols are the papers', with time subscripts: `q_tm1` are the values of the
first state, `q_t` those of the next state.
"""

import tensorflow as tf

from repertory.components.losses import ranks


def double_q_errors(
  q_tm1: tf.Tensor,
  a_tm1: tf.Tensor,
  r_t: tf.Tensor,
  discount_t: tf.Tensor,
  q_t_value: tf.Tensor,
  q_t_selector: tf.Tensor,
) -> tf.Tensor:
  """Double Q-learning errors.

    r + γ q_value(s', argmax_a q_selector(s', a)) − q(s, a)

  The online network selects the action and the target network evaluates it;
  with the target network for both this is Q-learning. No gradient flows into
  the target.

  See https://arxiv.org/abs/1509.06461, equation 4.

  Args:
    q_tm1: Values of the first state, `[B, A]`.
    a_tm1: Actions taken in the first state, integer `[B]`.
    r_t: Rewards, `[B]`.
    discount_t: Discounts of the bootstrap value, γ included, `[B]`.
    q_t_value: Values of the next state that evaluate its action, `[B, A]`.
    q_t_selector: Values of the next state that select its action, `[B, A]`.

  Returns:
    TD errors, `[B]`, positive where the value is too low.

  Raises:
    ValueError: If a shape is invalid.
  """
  ranks.check_ranks(q_tm1=(q_tm1, 2), a_tm1=(a_tm1, 1), r_t=(r_t, 1))
  ranks.check_ranks(discount_t=(discount_t, 1), q_t_value=(q_t_value, 2))
  ranks.check_ranks(q_t_selector=(q_t_selector, 2))
  a_t = tf.argmax(q_t_selector, axis=-1, output_type=tf.int32)  # [B]
  bootstrap = tf.gather(q_t_value, a_t, batch_dims=1)  # [B]
  target = tf.stop_gradient(r_t + discount_t * bootstrap)  # [B]
  # tf.gather does not support small or unsigned integers.
  a_tm1 = tf.cast(a_tm1, tf.int32)
  return target - tf.gather(q_tm1, a_tm1, batch_dims=1)  # [B]


def huber(errors: tf.Tensor, threshold: float) -> tf.Tensor:
  """Huber loss: ½ x² up to the threshold, linear beyond it.

  Args:
    errors: x, of any shape.
    threshold: κ, where the loss becomes linear; also the largest slope.

  Returns:
    The losses, in the shape of `errors`.
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
  https://arxiv.org/abs/1511.05952, section 3.4.

  Args:
    probabilities: P, the sampling probability of each item, `[B]`.
    table_sizes: N, items in the table at sampling time, integer `[B]`.
    exponent: β, in [0, 1].

  Returns:
    Weights in (0, 1], float32 `[B]`.
  """
  ranks.check_ranks(
    probabilities=(probabilities, 1), table_sizes=(table_sizes, 1)
  )
  likelihood = tf.cast(table_sizes, probabilities.dtype) * probabilities
  weights = likelihood ** -tf.cast(exponent, likelihood.dtype)
  return tf.cast(weights / tf.reduce_max(weights), tf.float32)
