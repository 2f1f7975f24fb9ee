"""Losses that keep a policy close to the one that acted.

All are means over the steps of a mask, `[T, B]`; "the paper" is
https://arxiv.org/abs/1707.06347.
"""

import numpy as np
import tensorflow as tf

from repertory.components.losses import masking

# Beside the largest number; what deviates less is taken to be equal. Of single
# precision it is some hundred roundings, of which a sum of many makes a few.
_MIN_DEVIATION = 1e-5


def clipped_surrogate_loss(
  ratios: tf.Tensor,
  advantages: tf.Tensor,
  mask: tf.Tensor,
  epsilon: float | tf.Tensor,
) -> tf.Tensor:
  """Computes −mean min(ρ_t A_t, clip(ρ_t, 1 − ε, 1 + ε) A_t).

  A pessimistic bound: where a ratio beyond ε would make it better, there is no
  gradient; where it makes it worse, there is. The paper, equation 7.

  Args:
    ratios: ρ_t = π / μ, `[T, B]`.
    advantages: A_t, `[T, B]`; no gradient flows into them.
    mask: Bool `[T, B]`.
    epsilon: ε, not negative.
  """
  masking.check_shapes(ratios=ratios, advantages=advantages, mask=mask)
  # Masked before the product too: 0 · ∞ is no 0.
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
  """Computes mean ½ max((v_t − V)², (v_t − V_old − clip(V − V_old, ±ε))²).

  Not in the paper but in its code; it holds values near those that the
  advantages were made of: see https://arxiv.org/abs/2005.12729, section 3.

  Args:
    values: V(x_t), `[T, B]`.
    old_values: V_old(x_t), from before the update, `[T, B]`.
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
  """Shifts and scales to mean 0 and deviation 1 over the mask.

  Numbers that are equal become 0, also if they only are so up to rounding:
  with a deviation of at most 10⁻⁵ of the largest one's size, what would be
  scaled up is noise. The unit of the numbers does not matter.

  Args:
    values: `[T, B]`.
    mask: Bool `[T, B]`.

  Returns:
    `[T, B]`; 0 outside the mask.
  """
  masking.check_shapes(values=values, mask=mask)
  zeros = tf.zeros_like(values)
  kept = tf.where(mask, values, zeros)
  # In units of the largest: equal ones are ± 1, whose mean is exact, and
  # squares neither vanish nor grow beyond all bounds.
  kept = tf.math.divide_no_nan(kept, tf.reduce_max(tf.abs(kept)))
  centered = tf.where(mask, kept - masking.masked_mean(kept, mask), zeros)
  deviation = tf.sqrt(masking.masked_mean(centered**2, mask))
  # Asked so that what is not a number stays so.
  is_noise = deviation <= _MIN_DEVIATION
  return tf.where(is_noise, zeros, tf.math.divide_no_nan(centered, deviation))


def approximate_kl(ratios: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Estimates KL(μ ‖ π) as mean (ρ_t − 1 − log ρ_t), which is never negative.

  See http://joschu.net/blog/kl-approx.html, estimator k3.

  Args:
    ratios: ρ_t = π / μ, of actions that μ took, `[T, B]`.
    mask: Bool `[T, B]`.
  """
  masking.check_shapes(ratios=ratios, mask=mask)
  # An action that is next to impossible now may have a ratio of 0.
  least = np.finfo(tf.as_dtype(ratios.dtype).as_numpy_dtype).tiny
  logarithms = tf.math.log(tf.maximum(ratios, least))
  return masking.masked_mean(ratios - 1 - logarithms, mask)


def explained_variance(
  values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Computes 1 − Var(v_t − V(x_t)) / Var(v_t); 0 where targets are all equal.

  1 where values foretell the targets, 0 where they tell nothing, below if they
  mislead.

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
