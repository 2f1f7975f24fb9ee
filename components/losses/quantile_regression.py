"""Quantile regression (QR-DQN, IQN).

The quantile of τ is the return that a fraction τ of all returns does not
exceed. In contrast to `distributional`, no support has to be chosen.
"""

import tensorflow as tf

from repertory.components.losses import q_learning, shape_checks


def quantile_midpoints(num_quantiles: int) -> tf.Tensor:
  """Quantile midpoints of QR-DQN, τ̂_i = (i + ½) / N for i = 0, …, N − 1.

  N equally weighted atoms at these quantiles approximate a distribution best:
  https://arxiv.org/abs/1710.10044, lemma 2.

  Args:
    num_quantiles: N.

  Returns:
    float32 `[N]`, in (0, 1).
  """
  return (tf.range(num_quantiles, dtype=tf.float32) + 0.5) / num_quantiles


def quantile_huber(
  quantiles: tf.Tensor, taus: tf.Tensor, targets: tf.Tensor, threshold: float
) -> tf.Tensor:
  """Quantile Huber loss (QR-DQN, IQN), summed over quantiles.

    Σ_i mean_j |τ_i − 1{u_ij < 0}| huber(u_ij) / κ   with u_ij = y_j − θ_i

  The weight is τ where the quantile is too low and 1 − τ where it is too high.
  So the loss is minimal where a fraction τ of the targets is below.

  See https://arxiv.org/abs/1710.10044, equation 10, and, with the division by
  κ, https://arxiv.org/abs/1806.06923, equation 3. No gradient flows into the
  targets.

  Args:
    quantiles: θ, `[B, N]`.
    taus: τ of the quantiles, in [0, 1], `[B, N]`, or `[1, N]` for all rows.
    targets: y, samples or quantiles of the target distribution, `[B, M]`.
    threshold: κ, where the Huber loss becomes linear.

  Returns:
    Losses, `[B]`.

  Raises:
    ValueError: If a shape is invalid.
  """
  shape_checks.check_ranks(quantiles=(quantiles, 2), taus=(taus, 2))
  shape_checks.check_ranks(targets=(targets, 2))
  targets = tf.stop_gradient(targets)
  errors = targets[:, None, :] - quantiles[:, :, None]  # [B, N, M]
  is_too_high = tf.cast(errors < 0, errors.dtype)  # [B, N, M]
  weights = tf.abs(taus[:, :, None] - is_too_high)  # [B, N, M]
  losses = weights * q_learning.huber(errors, threshold) / threshold
  return tf.reduce_sum(tf.reduce_mean(losses, axis=2), axis=1)  # [B]
