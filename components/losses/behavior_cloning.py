"""Keeping a policy near the actions that data have."""

import tensorflow as tf

from repertory.components.losses import ranks


def squared_cloning_loss(a: tf.Tensor, a_data: tf.Tensor) -> tf.Tensor:
  """Computes the mean of (a − a_data)², over rows and numbers of an action.

  Args:
    a: Actions of the policy, `[B, D]`.
    a_data: Those of the data in the same states, `[B, D]`.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(a=(a, 2), a_data=(a_data, 2))
  return tf.reduce_mean((a - a_data) ** 2)


def cross_entropy_cloning_loss(
  logits: tf.Tensor, a_data: tf.Tensor
) -> tf.Tensor:
  """Computes mean (−log π(a_data | s)) of a policy that chooses actions.

  Args:
    logits: Those of π in each state, `[B, A]`.
    a_data: Numbers of the actions of the data, integers `[B]`.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(logits=(logits, 2), a_data=(a_data, 1))
  return tf.reduce_mean(
    tf.nn.sparse_softmax_cross_entropy_with_logits(a_data, logits)
  )


def weighted_cloning_loss(log_prob: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
  """Computes mean (−w log π(a_data | s)): clones some actions more than others.

  Args:
    log_prob: log π of the actions of the data, `[B]`.
    weights: w, `[B]`; no gradient flows into them.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(log_prob=(log_prob, 1), weights=(weights, 1))
  return -tf.reduce_mean(tf.stop_gradient(weights) * log_prob)


def cloning_policy_loss(
  q: tf.Tensor, a: tf.Tensor, a_data: tf.Tensor, alpha: float
) -> tf.Tensor:
  """Computes mean (−λ q(s, a)) + mean (a − a_data)², λ = α / mean |q|.

  λ, a constant to the gradient, weighs both alike whatever rewards are
  measured in. See https://arxiv.org/abs/2106.06860, equations 4 and 5.

  Args:
    q: Values of the policy's actions, `[B]`.
    a: These actions, `[B, D]`.
    a_data: Those of the data in the same states, `[B, D]`.
    alpha: α, how much values count.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(q=(q, 1))
  size = tf.reduce_mean(tf.abs(tf.stop_gradient(q)))
  # Where all values are 0, there is nothing to weigh.
  scale = tf.math.divide_no_nan(alpha, size)
  return squared_cloning_loss(a, a_data) - scale * tf.reduce_mean(q)
