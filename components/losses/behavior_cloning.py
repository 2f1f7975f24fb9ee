"""Behavior cloning, also weighted by advantages (AWR, CRR), and IQL."""

import math

import tensorflow as tf

from repertory.components.losses import shape_checks


def squared_cloning_loss(a: tf.Tensor, a_data: tf.Tensor) -> tf.Tensor:
  """Mean squared error of behavior cloning, mean (a − a_data)², of `[B, D]`."""
  shape_checks.check_ranks(a=(a, 2), a_data=(a_data, 2))
  return tf.reduce_mean((a - a_data) ** 2)


def cross_entropy_cloning_loss(
  logits: tf.Tensor, a_data: tf.Tensor
) -> tf.Tensor:
  """Cross-entropy of behavior cloning, mean (−log π(a_data | s)).

  Logits of π are `[B, A]`, indices of the data set's actions integers `[B]`.
  """
  shape_checks.check_ranks(logits=(logits, 2), a_data=(a_data, 1))
  return tf.reduce_mean(
    tf.nn.sparse_softmax_cross_entropy_with_logits(a_data, logits)
  )


def weighted_cloning_loss(log_prob: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
  """Weighted behavior cloning (AWR, CRR, IQL), mean (−w log π(a_data | s)).

  log π and the weights w are `[B]`; no gradient flows into the weights.
  """
  shape_checks.check_ranks(log_prob=(log_prob, 1), weights=(weights, 1))
  return -tf.reduce_mean(tf.stop_gradient(weights) * log_prob)


def td3_bc_policy_loss(
  q: tf.Tensor, a: tf.Tensor, a_data: tf.Tensor, alpha: float
) -> tf.Tensor:
  """TD3+BC policy loss, mean (−λ q(s, a)) + mean (a − a_data)².

  λ = α / mean |q|, without a gradient: https://arxiv.org/abs/2106.06860,
  equations 4 and 5. Values of the policy's actions are `[B]`, its actions and
  the data set's `[B, D]`.
  """
  shape_checks.check_ranks(q=(q, 1))
  size = tf.reduce_mean(tf.abs(tf.stop_gradient(q)))
  # If all values are 0, only the cloning term remains.
  scale = tf.math.divide_no_nan(alpha, size)
  return squared_cloning_loss(a, a_data) - scale * tf.reduce_mean(q)


def expectile_losses(errors: tf.Tensor, expectile: float) -> tf.Tensor:
  """Expectile loss of IQL, |τ − 1[u < 0]| u².

  See https://arxiv.org/abs/2110.06169, equation 4. Errors u are targets minus
  predictions, of any shape.
  """
  weights = tf.where(errors < 0, 1.0 - expectile, expectile)
  return weights * errors**2


def exponential_weights(
  advantages: tf.Tensor, scale: float, limit: float
) -> tf.Tensor:
  """Exponential advantage weights, min(exp(scale · A), limit).

  Finite even where exp overflows; `scale` is an inverse temperature.
  """
  return tf.exp(tf.minimum(scale * advantages, math.log(limit)))


def binary_weights(advantages: tf.Tensor) -> tf.Tensor:
  """Binary advantage weights of CRR, 1[A > 0], of any shape."""
  return tf.cast(advantages > 0, advantages.dtype)
