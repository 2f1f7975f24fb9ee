"""Deterministic policy gradient (DPG)."""

import tensorflow as tf


def deterministic_policy_loss(
  a_t: tf.Tensor, dqda_t: tf.Tensor, max_norm: float | None = None
) -> tf.Tensor:
  """DPG loss, mean ½ |stop_gradient(a + ∂q/∂a) − a|².

  Its gradient is −∂q/∂a ∂a/∂θ: gradient ascent on the critic. See
  https://arxiv.org/abs/1509.02971, equation 6.

  Args:
    a_t: Actions of the policy, `[B, D]`.
    dqda_t: ∂q/∂a at these actions, `[B, D]`.
    max_norm: Limit of the norm of each row of ∂q/∂a, by scaling; None for no
      limit.

  Raises:
    ValueError: If a shape is invalid.
  """
  shape = tf.TensorShape(a_t.shape)
  if shape.rank != 2 or not shape.is_compatible_with(dqda_t.shape):
    raise ValueError(
      'a_t and dqda_t must have the same shape [B, D], got '
      f'{shape} and {dqda_t.shape}.'
    )
  if max_norm is not None:
    dqda_t = tf.clip_by_norm(dqda_t, max_norm, axes=[-1])
  # The actions are subtracted first: added to them, a small ∂q/∂a rounds off.
  errors = tf.stop_gradient(dqda_t) + (tf.stop_gradient(a_t) - a_t)  # [B, D]
  return tf.reduce_mean(0.5 * tf.reduce_sum(errors**2, axis=-1))
