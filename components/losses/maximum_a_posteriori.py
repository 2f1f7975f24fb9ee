"""Maximum a posteriori policy optimization (MPO): losses of E-step and M-step.

The E-step reweights the policy by action values; the M-step fits the policy to
the result within a trust region. Symbols are those of
https://arxiv.org/abs/1812.02256: η is the temperature, α a KL multiplier, and
each ε a bound of a KL divergence, in nats.

Candidates are N actions sampled from the policy, each of prior probability 1/N,
or all discrete actions, with the policy's probabilities.
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

  Minimizing g lowers η while KL(p ‖ π) < ε, and raises it otherwise.

  Args:
    q: Values of the candidates, `[B, N]`; no gradient flows into them.
    log_prior: log π, `[B, N]`; no gradient flows into them either.
    temperature: η, a scalar above 0.
    epsilon: ε, the bound of the mean KL divergence.

  Raises:
    ValueError: If a shape is invalid.
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

  Args:
    probs: p, `[B, N]`.
    log_prob: log π of the candidates, `[B, N]`.
  """
  shape_checks.check_ranks(probs=(probs, 2), log_prob=(log_prob, 2))
  return -tf.reduce_mean(tf.reduce_sum(probs * log_prob, axis=-1))


def mpo_kl_loss(
  kl: tf.Tensor, alpha: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, tf.Tensor]:
  """KL penalty of MPO and the loss of its multipliers.

  With k_d the mean KL over states of each of D parts of a policy,

    penalty = Σ_d α_d k_d, dual loss = Σ_d α_d (ε − k_d)

  α is constant in the penalty, and k in the dual loss.

  Args:
    kl: KL divergences, `[B, D]`.
    alpha: α, Lagrange multipliers, `[D]`.
    epsilon: ε, the bound of each mean.

  Returns:
    The penalty and the dual loss, scalars.

  Raises:
    ValueError: If a shape is invalid.
  """
  shape_checks.check_ranks(kl=(kl, 2), alpha=(alpha, 1))
  mean = tf.reduce_mean(kl, axis=0)  # [D]
  penalty = tf.reduce_sum(tf.stop_gradient(alpha) * mean)
  dual_loss = tf.reduce_sum(alpha * (epsilon - tf.stop_gradient(mean)))
  return penalty, dual_loss


def categorical_mixture(logits: tf.Tensor, log_weights: tf.Tensor) -> tf.Tensor:
  """Log-probabilities of a mixture of categorical distributions.

  Args:
    logits: Logits of each distribution, `[B, N, M]`.
    log_weights: log w, logarithms of the mixture weights, `[B, N]`.

  Returns:
    log Σ_i w_i p_i, −∞ where single precision underflows, `[B, M]`.
  """
  shape_checks.check_ranks(logits=(logits, 3), log_weights=(log_weights, 2))
  # In probabilities: the update needs the same softmax for the values.
  weighted = tf.exp(log_weights)[..., None] * tf.nn.softmax(logits)
  return tf.math.log(tf.reduce_sum(weighted, axis=1))  # [B, M]
