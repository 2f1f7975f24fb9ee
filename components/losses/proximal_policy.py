"""Proximal policy optimization (PPO): losses and diagnostics.

All are means over a mask, `[T, B]`; "the paper" is
https://arxiv.org/abs/1707.06347.
"""

import numpy as np
import tensorflow as tf

from repertory.components.losses import masking

# Relative to the largest value; a smaller deviation counts as rounding error.
# It is some hundred times the rounding error of single precision.
_MIN_DEVIATION = 1e-5


def clipped_surrogate_loss(
  ratios: tf.Tensor,
  advantages: tf.Tensor,
  mask: tf.Tensor,
  epsilon: float | tf.Tensor,
) -> tf.Tensor:
  """PPO clipped surrogate loss, −mean min(ρ_t A_t, clip(ρ_t, 1 ± ε) A_t).

  A pessimistic bound: ratios beyond 1 ± ε have no gradient where they improve
  the objective, but do where they worsen it. The paper, equation 7.

  Args:
    ratios: ρ_t = π / μ, `[T, B]`.
    advantages: A_t, `[T, B]`; no gradient flows into them.
    mask: Bool `[T, B]`.
    epsilon: ε, not negative.
  """
  masking.check_shapes(ratios=ratios, advantages=advantages, mask=mask)
  # Masked before the product, too, because 0 · ∞ is not 0.
  advantages = tf.stop_gradient(
    tf.where(mask, advantages, tf.zeros_like(advantages))
  )
  clipped = tf.clip_by_value(ratios, 1 - epsilon, 1 + epsilon)
  surrogates = tf.minimum(ratios * advantages, clipped * advantages)
  return -masking.masked_mean(surrogates, mask)


def clipped_value_loss(
  values: tf.Tensor,
  old_values: tf.Tensor,
  targets: tf.Tensor,
  mask: tf.Tensor,
  epsilon: float | tf.Tensor,
) -> tf.Tensor:
  """Clipped value loss of PPO implementations.

    mean ½ max((v_t − V)², (v_t − V_old − clip(V − V_old, ±ε))²)

  Not in the paper but in its code. It keeps values close to those before the
  update: see https://arxiv.org/abs/2005.12729, section 3.

  Args:
    values: V(x_t), `[T, B]`.
    old_values: V_old(x_t), before the update, `[T, B]`.
    targets: v_t, `[T, B]`.
    mask: Bool `[T, B]`.
    epsilon: ε, not negative, in units of the values.
  """
  masking.check_shapes(
    values=values, old_values=old_values, targets=targets, mask=mask
  )
  old_values = tf.stop_gradient(old_values)
  targets = tf.stop_gradient(targets)
  moves = tf.clip_by_value(values - old_values, -epsilon, epsilon)
  errors = tf.maximum(
    (targets - values) ** 2, (targets - old_values - moves) ** 2
  )
  return masking.masked_mean(0.5 * errors, mask)


def standardize(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Standardizes values to mean 0 and standard deviation 1 over the mask.

  Equal values become 0. So do values whose standard deviation is at most 10⁻⁵
  of the largest magnitude, because only rounding errors would be scaled up. The
  scale of the values does not matter.

  Args:
    values: `[T, B]`.
    mask: Bool `[T, B]`.

  Returns:
    `[T, B]`; 0 outside the mask.
  """
  masking.check_shapes(values=values, mask=mask)
  zeros = tf.zeros_like(values)
  kept = tf.where(mask, values, zeros)
  # Relative to the largest value: equal values become ± 1, whose mean is exact,
  # and squares neither underflow nor overflow.
  kept = tf.math.divide_no_nan(kept, tf.reduce_max(tf.abs(kept)))
  centered = tf.where(mask, kept - masking.masked_mean(kept, mask), zeros)
  deviation = tf.sqrt(masking.masked_mean(centered**2, mask))
  # Written such that NaN stays NaN.
  is_noise = deviation <= _MIN_DEVIATION
  return tf.where(is_noise, zeros, tf.math.divide_no_nan(centered, deviation))


def approximate_kl(ratios: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Approximate KL(μ ‖ π), mean (ρ_t − 1 − log ρ_t), which is never negative.

  See http://joschu.net/blog/kl-approx.html, estimator k3.

  Args:
    ratios: ρ_t = π / μ, for actions sampled from μ, `[T, B]`.
    mask: Bool `[T, B]`.
  """
  masking.check_shapes(ratios=ratios, mask=mask)
  # The ratio of an improbable action may underflow to 0.
  least = np.finfo(tf.as_dtype(ratios.dtype).as_numpy_dtype).tiny
  logarithms = tf.math.log(tf.maximum(ratios, least))
  return masking.masked_mean(ratios - 1 - logarithms, mask)


def explained_variance(
  values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Explained variance of the value targets, 1 − Var(v_t − V(x_t)) / Var(v_t).

  1 for perfect predictions, 0 if values predict nothing, negative if they are
  worse than a constant; 0 if all targets are equal.

  Args:
    values: V(x_t), `[T, B]`.
    targets: v_t, `[T, B]`.
    mask: Bool `[T, B]`.
  """
  masking.check_shapes(values=values, targets=targets, mask=mask)

  def variance(x):
    return masking.masked_mean((x - masking.masked_mean(x, mask)) ** 2, mask)

  total = variance(targets)
  return tf.math.divide_no_nan(total - variance(targets - values), total)
