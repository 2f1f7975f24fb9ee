"""Values as distributions that are told by their quantiles.

A quantile is the return that a share τ of all returns is at most. In contrast
to `distributional` no support has to be chosen.
"""

import tensorflow as tf

from repertory.components.losses import q_learning, ranks


def quantile_midpoints(num_quantiles: int) -> tf.Tensor:
  """Returns τ̂_i = (i + ½) / N for i = 0, …, N − 1, evenly spread.

  With quantiles there, N atoms of equal weight are nearest to a distribution:
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
  """Computes the quantile Huber loss, summed over quantiles.

    Σ_i mean_j |τ_i − 1{u_ij < 0}| huber(u_ij) / κ   with u_ij = y_j − θ_i

  An error weighs τ where the quantile is too low and 1 − τ where it is too
  high, so the quantile is right where a share τ of the targets is below.

  See https://arxiv.org/abs/1710.10044, equation 10, and, with the division by
  κ, https://arxiv.org/abs/1806.06923, equation 3. No gradient flows into the
  targets.

  Args:
    quantiles: θ, `[B, N]`.
    taus: τ, which quantiles these are, `[B, N]` or the same of all rows `[1,
      N]`; in [0, 1].
    targets: y, samples or quantiles of what is learned, `[B, M]`.
    threshold: κ, where the Huber loss turns linear.

  Returns:
    Losses, `[B]`.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(quantiles=(quantiles, 2), taus=(taus, 2))
  ranks.check_ranks(targets=(targets, 2))
  targets = tf.stop_gradient(targets)
  errors = targets[:, None, :] - quantiles[:, :, None]  # [B, N, M]
  is_too_high = tf.cast(errors < 0, errors.dtype)  # [B, N, M]
  weights = tf.abs(taus[:, :, None] - is_too_high)  # [B, N, M]
  losses = weights * q_learning.huber(errors, threshold) / threshold
  return tf.reduce_sum(tf.reduce_mean(losses, axis=2), axis=1)  # [B]
