"""Maximum a posteriori policy optimization: losses of its two steps.

The E-step tempers a policy by the values of actions, the M-step fits the policy
to what came of it, without going far. Symbols are those of
https://arxiv.org/abs/1812.02256: η is the temperature, α the price of moving,
each ε a bound of a Kullback-Leibler divergence, in nats.

Actions are candidates: N drawn from the policy, each of prior probability 1/N,
or all that there are, with the policy's own probabilities.
"""

from typing import NamedTuple

import tensorflow as tf

from repertory.components.losses import ranks


class TemperedPolicy(NamedTuple):
  """What the E-step says of candidates.

  Attributes:
    probs: Their probabilities after it, `[B, N]`; no gradient flows into them.
    kl: How far they are from the prior ones, `[B]`; of N samples at most log N.
    dual_loss: What the temperature is to lower, a scalar.
  """

  probs: tf.Tensor
  kl: tf.Tensor
  dual_loss: tf.Tensor


def temper(
  q: tf.Tensor, log_prior: tf.Tensor, temperature: tf.Tensor, epsilon: float
) -> TemperedPolicy:
  """Prefers candidates of larger values, as far as the temperature lets.

    p_i ∝ π_i exp(q_i / η)
    g(η) = η ε + η mean log Σ_i π_i exp(q_i / η)

  The gradient of g lowers η while p is nearer to π than ε, and raises it else.

  Args:
    q: Values of the candidates, `[B, N]`; no gradient flows into them.
    log_prior: log π, `[B, N]`; none flows into them either.
    temperature: η, a scalar above 0.
    epsilon: The bound of the mean divergence.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(q=(q, 2), log_prior=(log_prior, 2))
  q, log_prior = tf.stop_gradient(q), tf.stop_gradient(log_prior)
  # From the best one on, for q / η may be large.
  best = tf.reduce_max(q, axis=-1)  # [B]
  logits = log_prior + (q - best[:, None]) / temperature  # [B, N]
  evidence = tf.reduce_logsumexp(logits, axis=-1)  # [B]
  dual_loss = tf.reduce_mean(best) + temperature * (
    epsilon + tf.reduce_mean(evidence)
  )
  log_probs = tf.stop_gradient(logits - evidence[:, None])  # [B, N]
  probs = tf.exp(log_probs)
  kl = tf.reduce_sum(probs * (log_probs - log_prior), axis=-1)  # [B]
  return TemperedPolicy(probs, kl, dual_loss)


def weighted_likelihood_loss(
  probs: tf.Tensor, log_prob: tf.Tensor
) -> tf.Tensor:
  """Computes mean −Σ_i p_i log π(a_i | s), which fits π to p.

  Args:
    probs: p, `[B, N]`.
    log_prob: log π of the candidates, `[B, N]`.
  """
  ranks.check_ranks(probs=(probs, 2), log_prob=(log_prob, 2))
  return -tf.reduce_mean(tf.reduce_sum(probs * log_prob, axis=-1))


def kl_penalty(
  kl: tf.Tensor, alpha: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, tf.Tensor]:
  """Prices how far a policy moves, and finds the price.

  With k_d = mean KL over states of each of D parts of a policy,

    penalty = Σ_d α_d k_d, dual loss = Σ_d α_d (ε − k_d)

  where the first holds α constant, and the second k.

  Args:
    kl: Divergences, `[B, D]`.
    alpha: Prices, `[D]`.
    epsilon: The bound of each of the means.

  Returns:
    The penalty and the dual loss, scalars.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(kl=(kl, 2), alpha=(alpha, 1))
  mean = tf.reduce_mean(kl, axis=0)  # [D]
  penalty = tf.reduce_sum(tf.stop_gradient(alpha) * mean)
  dual_loss = tf.reduce_sum(alpha * (epsilon - tf.stop_gradient(mean)))
  return penalty, dual_loss


def categorical_mixture(logits: tf.Tensor, log_weights: tf.Tensor) -> tf.Tensor:
  """Mixes distributions over the same atoms.

  Args:
    logits: Those of each distribution, `[B, N, M]`.
    log_weights: Logarithms of their shares, which sum to 1, `[B, N]`.

  Returns:
    Logarithms of the probabilities Σ_i w_i p_i, −∞ of those that single
    precision cannot hold, `[B, M]`.
  """
  ranks.check_ranks(logits=(logits, 3), log_weights=(log_weights, 2))
  # Probabilities, whose softmax an update needs for values, too.
  weighted = tf.exp(log_weights)[..., None] * tf.nn.softmax(logits)
  return tf.math.log(tf.reduce_sum(weighted, axis=1))  # [B, M]
