"""Conservative Q-learning (CQL)."""

import math

import tensorflow as tf

from repertory.components.losses import shape_checks


def conservative_q_loss(
  q_proposed: tf.Tensor, log_prob: tf.Tensor, q_data: tf.Tensor
) -> tf.Tensor:
  """CQL regularizer, log ∫ exp(q(s, a)) da − q(s, a_data), from samples.

    log (1/P Σ_p exp(q(s, a_p)) / μ(a_p)) − q(s, a_data),  a_p ~ μ

  Minimizing it lowers the largest values and raises those of the data set's
  actions, so out-of-distribution actions are not overestimated. See https://arxiv.org/abs/2006.04779,
  equation 4 and appendix F.

  Args:
    q_proposed: Values of P actions, `[B, P]`.
    log_prob: log μ of each, `[B, P]`; −log P if these are all discrete actions.
    q_data: Values of the data set's actions, `[B]`.

  Returns:
    The gaps, `[B]`.

  Raises:
    ValueError: If a shape is invalid.
  """
  shape_checks.check_ranks(q_proposed=(q_proposed, 2), log_prob=(log_prob, 2))
  shape_checks.check_ranks(q_data=(q_data, 1))
  weighted = tf.reduce_logsumexp(q_proposed - log_prob, axis=-1)  # [B]
  return weighted - math.log(q_proposed.shape[1]) - q_data
