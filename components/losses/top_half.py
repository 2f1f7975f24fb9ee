"""V-MPO: E-step on the top half of advantages, and its policy loss.

Symbols are those of https://arxiv.org/abs/1909.12238: ψ are the weights of
steps, η is the temperature and ε_η the KL bound, in nats. Tensors are `[T, B]`.
"""

import tensorflow as tf

from repertory.components.losses import masking, maximum_a_posteriori

# Stands for log 0, but finite.
_NEVER = -1e30


def top_half(advantages: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Returns the mask of the top half of advantages.

  The half of an odd number is rounded up. Steps that tie with the last one are
  included, so the order of steps does not matter.

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


def vmpo_e_step(
  advantages: tf.Tensor,
  mask: tf.Tensor,
  temperature: tf.Tensor,
  epsilon: float,
) -> maximum_a_posteriori.EStep:
  """Computes the weights ψ and the temperature loss of V-MPO (section 4.1).

    ψ_t ∝ exp(A_t / η) in the top half, else 0
    g(η) = η ε_η + η log mean exp(A_t / η), over the top half

  It is `mpo_e_step` with the steps of the top half as candidates of one state.

  Args:
    advantages: A_t, `[T, B]`; no gradient flows into them.
    mask: Bool `[T, B]`.
    temperature: η, a scalar above 0.
    epsilon: ε_η.

  Returns:
    ψ `[T, B]`, all 0 if the mask is empty; its KL divergence from uniform
    weights; and g.
  """
  is_best = top_half(advantages, mask)  # [T, B]
  count = tf.reduce_sum(tf.cast(is_best, advantages.dtype))
  # With an empty mask, the prior is uniform and all weights are 0 below.
  has_any = count > 0
  prior = tf.where(is_best | ~has_any, tf.zeros_like(advantages), _NEVER)
  tempered = maximum_a_posteriori.mpo_e_step(
    tf.reshape(tf.where(is_best, advantages, 0.0), [1, -1]),
    tf.nn.log_softmax(tf.reshape(prior, [1, -1])),
    temperature,
    epsilon,
  )
  probs = tf.reshape(tempered.probs, tf.shape(advantages))
  return tempered._replace(
    probs=tf.where(is_best, probs, tf.zeros_like(probs)), kl=tempered.kl[0]
  )


def vmpo_policy_loss(
  weights: tf.Tensor, log_probs: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """V-MPO policy loss, −Σ_t ψ_t log π(a_t | x_t).

  Args:
    weights: ψ_t, `[T, B]`; no gradient flows into them.
    log_probs: log π(a_t | x_t), `[T, B]`.
    mask: Bool `[T, B]`.
  """
  masking.check_shapes(weights=weights, log_probs=log_probs, mask=mask)
  kept = tf.where(mask, log_probs, tf.zeros_like(log_probs))
  return -tf.reduce_sum(tf.stop_gradient(weights) * kept)
