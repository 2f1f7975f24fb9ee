"""On-policy maximum a posteriori policy optimization: its E-step.

It tempers what was done by how good it was, and only the better half of it.
Symbols are those of https://arxiv.org/abs/1909.12238: ψ are the weights of
steps, η is the temperature, ε_η its bound, in nats. All steps are `[T, B]`.
"""

import tensorflow as tf

from repertory.components.losses import masking, maximum_a_posteriori

# The logarithm of a probability of 0, of which no difference is infinite.
_NEVER = -1e30


def best_half(advantages: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Tells which steps are the better half of those that happened.

  An odd number has a larger half. Steps as good as the last one of the half are
  in it too: so it does not matter in which order steps come.

  Args:
    advantages: A_t, `[T, B]`.
    mask: Bool `[T, B]`.

  Returns:
    Bool `[T, B]`.
  """
  masking.check_shapes(advantages=advantages, mask=mask)
  lowest = tf.fill(tf.shape(advantages), advantages.dtype.min)
  kept = tf.where(mask, advantages, lowest)
  ranked = tf.sort(tf.reshape(kept, [-1]), direction='DESCENDING')  # [T · B]
  count = tf.reduce_sum(tf.cast(mask, tf.int32))
  least = tf.gather(ranked, tf.maximum((count + 1) // 2 - 1, 0))
  return mask & (advantages >= least)


def temper_best_half(
  advantages: tf.Tensor,
  mask: tf.Tensor,
  temperature: tf.Tensor,
  epsilon: float,
) -> maximum_a_posteriori.TemperedPolicy:
  """Prefers steps of larger advantages, as far as the temperature lets.

    ψ_t ∝ exp(A_t / η) in the better half, else 0
    g(η) = η ε_η + η log mean exp(A_t / η), of the better half

  It is `temper`, where the steps of the better half are the candidates of one
  state. The paper, section 4.1.

  Args:
    advantages: A_t, `[T, B]`; no gradient flows into them.
    mask: Bool `[T, B]`.
    temperature: η, a scalar above 0.
    epsilon: ε_η.

  Returns:
    ψ `[T, B]`, which is 0 everywhere if no step happened; its divergence from
    weights that are all equal; and g.
  """
  is_best = best_half(advantages, mask)  # [T, B]
  count = tf.reduce_sum(tf.cast(is_best, advantages.dtype))
  # If there is none, all are alike, and nothing comes of it.
  has_any = count > 0
  prior = tf.where(is_best | ~has_any, tf.zeros_like(advantages), _NEVER)
  tempered = maximum_a_posteriori.temper(
    tf.reshape(tf.where(is_best, advantages, 0.0), [1, -1]),
    tf.nn.log_softmax(tf.reshape(prior, [1, -1])),
    temperature,
    epsilon,
  )
  probs = tf.reshape(tempered.probs, tf.shape(advantages))
  return tempered._replace(
    probs=tf.where(is_best, probs, tf.zeros_like(probs)), kl=tempered.kl[0]
  )


def weighted_steps_loss(
  weights: tf.Tensor, log_probs: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Computes −Σ_t ψ_t log π(a_t | x_t).

  Args:
    weights: ψ_t, `[T, B]`; no gradient flows into them.
    log_probs: log π(a_t | x_t), `[T, B]`.
    mask: Bool `[T, B]`.
  """
  masking.check_shapes(weights=weights, log_probs=log_probs, mask=mask)
  kept = tf.where(mask, log_probs, tf.zeros_like(log_probs))
  return -tf.reduce_sum(tf.stop_gradient(weights) * kept)
