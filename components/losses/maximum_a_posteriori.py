"""Maximum a posteriori policy optimization: losses of MPO and V-MPO.

The E-step reweights the policy by action values (MPO) or advantages (V-MPO);
the M-step fits the policy to the result within a trust region. Symbols are
those of https://arxiv.org/abs/1812.02256 and https://arxiv.org/abs/1909.12238:
η is the temperature, α a KL multiplier, ψ the weights of steps, and each ε a
bound of a KL divergence, in nats.

Candidates of MPO are N actions sampled from the policy, each of prior
probability 1/N, or all discrete actions, with the policy's probabilities.
"""

from typing import NamedTuple

import tensorflow as tf

from repertory.components.losses import shape_checks


class EStep(NamedTuple):
  """Result of the E-step of MPO.

  Attributes:
    probs: Improved probabilities of the candidates, `[B, N]`, without
      gradients.
    kl: KL divergence from the prior, `[B]`; at most log N for N samples.
    dual_loss: Loss of the temperature, a scalar.
  """

  probs: tf.Tensor
  kl: tf.Tensor
  dual_loss: tf.Tensor


def mpo_e_step(
  q: tf.Tensor, log_prior: tf.Tensor, temperature: tf.Tensor, epsilon: float
) -> EStep:
  """E-step of MPO: reweights candidates by exp(q / η).

    p_i ∝ π_i exp(q_i / η)
    g(η) = η ε + η mean log Σ_i π_i exp(q_i / η)

  Minimizing g lowers η while the mean KL(p ‖ π) < ε, and raises it otherwise.
  Values q of the candidates and log π are `[B, N]`, without gradients.
  """
  shape_checks.check_ranks(q=(q, 2), log_prior=(log_prior, 2))
  q, log_prior = tf.stop_gradient(q), tf.stop_gradient(log_prior)
  # Relative to the best value, because q / η may be large.
  best = tf.reduce_max(q, axis=-1)  # [B]
  logits = log_prior + (q - best[:, None]) / temperature  # [B, N]
  evidence = tf.reduce_logsumexp(logits, axis=-1)  # [B]
  dual_loss = tf.reduce_mean(best) + temperature * (
    epsilon + tf.reduce_mean(evidence)
  )
  log_probs = tf.stop_gradient(logits - evidence[:, None])  # [B, N]
  probs = tf.exp(log_probs)
  kl = tf.reduce_sum(probs * (log_probs - log_prior), axis=-1)  # [B]
  return EStep(probs, kl, dual_loss)


def mpo_policy_loss(probs: tf.Tensor, log_prob: tf.Tensor) -> tf.Tensor:
  """Policy loss of the M-step of MPO, mean −Σ_i p_i log π(a_i | s).

  Improved probabilities p and log π of the candidates are `[B, N]`.
  """
  shape_checks.check_ranks(probs=(probs, 2), log_prob=(log_prob, 2))
  return -tf.reduce_mean(tf.reduce_sum(probs * log_prob, axis=-1))


def mpo_kl_loss(
  kl: tf.Tensor, alpha: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, tf.Tensor]:
  """KL penalty of MPO and the loss of its multipliers.

  With k_d the mean KL over states of each of D parts of a policy,

    penalty = Σ_d α_d k_d, dual loss = Σ_d α_d (ε − k_d)

  α is constant in the penalty, and k in the dual loss. KL divergences are
  `[B, D]`, multipliers α `[D]`.
  """
  shape_checks.check_ranks(kl=(kl, 2), alpha=(alpha, 1))
  mean = tf.reduce_mean(kl, axis=0)  # [D]
  penalty = tf.reduce_sum(tf.stop_gradient(alpha) * mean)
  dual_loss = tf.reduce_sum(alpha * (epsilon - tf.stop_gradient(mean)))
  return penalty, dual_loss


def categorical_mixture(logits: tf.Tensor, log_weights: tf.Tensor) -> tf.Tensor:
  """Log-probabilities of a mixture, log Σ_i w_i p_i, `[B, M]`.

  Logits of the p_i are `[B, N, M]`, log w `[B, N]`. It is −∞ where single
  precision underflows.
  """
  shape_checks.check_ranks(logits=(logits, 3), log_weights=(log_weights, 2))
  weighted = tf.exp(log_weights)[..., None] * tf.nn.softmax(logits)
  return tf.math.log(tf.reduce_sum(weighted, axis=1))  # [B, M]


# Stands for log 0, but finite.
_NEVER = -1e30


def top_half(advantages: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Returns the mask of the top half of advantages.

  The half of an odd number is rounded up. Steps that tie with the last one are
  included, so the order of steps does not matter. All are `[T, B]`.
  """
  shape_checks.check_shapes(advantages=advantages, mask=mask)
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
) -> EStep:
  """Computes the weights ψ and the temperature loss of V-MPO (section 4.1).

    ψ_t ∝ exp(A_t / η) in the top half, else 0
    g(η) = η ε_η + η log mean exp(A_t / η), over the top half

  It is `mpo_e_step` with the steps of the top half as candidates of one state.
  Advantages and mask are `[T, B]`. Returns ψ `[T, B]`, all 0 if the mask is
  empty; its KL divergence from uniform weights; and g.
  """
  is_best = top_half(advantages, mask)  # [T, B]
  count = tf.reduce_sum(tf.cast(is_best, advantages.dtype))
  # With an empty mask, the prior is uniform and all weights are 0 below.
  has_any = count > 0
  prior = tf.where(is_best | ~has_any, tf.zeros_like(advantages), _NEVER)
  tempered = mpo_e_step(
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
  """V-MPO policy loss, −Σ_t ψ_t log π(a_t | x_t), over a mask `[T, B]`.

  No gradient flows into the weights ψ.
  """
  shape_checks.check_shapes(weights=weights, log_probs=log_probs, mask=mask)
  kept = tf.where(mask, log_probs, tf.zeros_like(log_probs))
  return -tf.reduce_sum(tf.stop_gradient(weights) * kept)
