"""Losses of actor-critic agents: policy gradients, PPO, entropy and values.

Arguments are sequences `[T, B]`, unless another shape is named, and bool masks
of this shape. Losses are masked means, so they do not depend on the amount of
padding. log π is of the actions a_t, A_t are advantages, V are values and v_t
their targets.
"""

import numpy as np
import tensorflow as tf

from repertory.components.losses import shape_checks


def policy_gradient_loss(
  log_probs: tf.Tensor, advantages: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Policy gradient loss (REINFORCE), −mean log π(a_t | x_t) A_t.

  Its gradient estimates that of the negative expected return
  (https://doi.org/10.1007/BF00992696). No gradient flows into the advantages.
  """
  shape_checks.check_shapes(
    log_probs=log_probs, advantages=advantages, mask=mask
  )
  # Masked before the product, too, because 0 · ∞ is not 0.
  advantages = tf.where(mask, advantages, tf.zeros_like(advantages))
  return -shape_checks.masked_mean(
    log_probs * tf.stop_gradient(advantages), mask
  )


def entropy_loss(entropies: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Entropy loss, −mean H(π(· | x_t)), against premature convergence.

  See https://arxiv.org/abs/1602.01783, section 4.
  """
  shape_checks.check_shapes(entropies=entropies, mask=mask)
  return -shape_checks.masked_mean(entropies, mask)


def value_loss(
  values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Value loss, mean ½ (v_t − V(x_t))²; no gradient flows into the targets."""
  shape_checks.check_shapes(values=values, targets=targets, mask=mask)
  errors = tf.stop_gradient(targets) - values
  errors = tf.where(mask, errors, tf.zeros_like(errors))
  return shape_checks.masked_mean(0.5 * errors**2, mask)


# e^20 is 5e8, whose products and sums stay finite.
_MAX_LOG_RATIO = 20.0


def importance_ratios(
  target_log_probs: tf.Tensor, behavior_log_probs: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Importance sampling ratios π(a_t | x_t) / μ(a_t | x_t), `[T, B]`.

  Ratios are 1 outside the mask. They are clipped at e^20, without a gradient,
  so that a single improbable action cannot make a mean infinite.
  """
  shape_checks.check_shapes(
    target_log_probs=target_log_probs,
    behavior_log_probs=behavior_log_probs,
    mask=mask,
  )
  # Masked before the exponential: its gradient would be 0 · ∞.
  differences = target_log_probs - behavior_log_probs
  differences = tf.where(mask, differences, tf.zeros_like(differences))
  return tf.exp(tf.minimum(differences, _MAX_LOG_RATIO))


# Relative to the largest value; a smaller deviation counts as rounding error.
_MIN_DEVIATION = 1e-5


def clipped_surrogate_loss(
  ratios: tf.Tensor,
  advantages: tf.Tensor,
  mask: tf.Tensor,
  epsilon: float | tf.Tensor,
) -> tf.Tensor:
  """PPO clipped surrogate loss, −mean min(ρ_t A_t, clip(ρ_t, 1 ± ε) A_t).

  See https://arxiv.org/abs/1707.06347, equation 7. ρ_t is π / μ, and ε ≥ 0. No
  gradient flows into the advantages.
  """
  shape_checks.check_shapes(ratios=ratios, advantages=advantages, mask=mask)
  # Masked before the product, too, because 0 · ∞ is not 0.
  advantages = tf.stop_gradient(
    tf.where(mask, advantages, tf.zeros_like(advantages))
  )
  clipped = tf.clip_by_value(ratios, 1 - epsilon, 1 + epsilon)
  surrogates = tf.minimum(ratios * advantages, clipped * advantages)
  return -shape_checks.masked_mean(surrogates, mask)


def clipped_value_loss(
  values: tf.Tensor,
  old_values: tf.Tensor,
  targets: tf.Tensor,
  mask: tf.Tensor,
  epsilon: float | tf.Tensor,
) -> tf.Tensor:
  """Clipped value loss of PPO implementations.

    mean ½ max((v_t − V)², (v_t − V_old − clip(V − V_old, ±ε))²)

  See https://arxiv.org/abs/2005.12729, section 3. V_old are the values before
  the update; ε, not negative, is in units of the values.
  """
  shape_checks.check_shapes(
    values=values, old_values=old_values, targets=targets, mask=mask
  )
  old_values = tf.stop_gradient(old_values)
  targets = tf.stop_gradient(targets)
  moves = tf.clip_by_value(values - old_values, -epsilon, epsilon)
  errors = tf.maximum(
    (targets - values) ** 2, (targets - old_values - moves) ** 2
  )
  return shape_checks.masked_mean(0.5 * errors, mask)


def standardize(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Standardizes values to mean 0 and standard deviation 1 over the mask.

  Values whose standard deviation is at most 10⁻⁵ of the largest magnitude, a
  rounding error, become 0. Returns 0 outside the mask.
  """
  shape_checks.check_shapes(values=values, mask=mask)
  zeros = tf.zeros_like(values)
  kept = tf.where(mask, values, zeros)
  # Relative to the largest value: equal values become ± 1, whose mean is exact,
  # and squares neither underflow nor overflow.
  kept = tf.math.divide_no_nan(kept, tf.reduce_max(tf.abs(kept)))
  centered = tf.where(mask, kept - shape_checks.masked_mean(kept, mask), zeros)
  deviation = tf.sqrt(shape_checks.masked_mean(centered**2, mask))
  # Written such that NaN stays NaN.
  is_noise = deviation <= _MIN_DEVIATION
  return tf.where(is_noise, zeros, tf.math.divide_no_nan(centered, deviation))


def approximate_kl(ratios: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Approximate KL(μ ‖ π), mean (ρ_t − 1 − log ρ_t), which is never negative.

  ρ_t is π / μ, for actions sampled from μ. See
  http://joschu.net/blog/kl-approx.html, estimator k3.
  """
  shape_checks.check_shapes(ratios=ratios, mask=mask)
  # The ratio of an improbable action may underflow to 0.
  least = np.finfo(tf.as_dtype(ratios.dtype).as_numpy_dtype).tiny
  logarithms = tf.math.log(tf.maximum(ratios, least))
  return shape_checks.masked_mean(ratios - 1 - logarithms, mask)


def explained_variance(
  values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Explained variance of the value targets, 1 − Var(v_t − V(x_t)) / Var(v_t).

  1 for perfect predictions, negative if they are worse than a constant; 0 if
  all targets are equal.
  """
  shape_checks.check_shapes(values=values, targets=targets, mask=mask)

  def variance(x):
    return shape_checks.masked_mean(
      (x - shape_checks.masked_mean(x, mask)) ** 2, mask
    )

  total = variance(targets)
  return tf.math.divide_no_nan(total - variance(targets - values), total)


def deterministic_policy_loss(
  a_t: tf.Tensor, dqda_t: tf.Tensor, max_norm: float | None = None
) -> tf.Tensor:
  """DPG loss, mean ½ |stop_gradient(a + ∂q/∂a) − a|².

  Its gradient is −∂q/∂a ∂a/∂θ: gradient ascent on the critic. See
  https://arxiv.org/abs/1509.02971, equation 6. The policy's actions a and ∂q/∂a
  are `[B, D]`; rows of the latter are scaled down to `max_norm`, if not None.
  """
  shape_checks.check_shapes('[B, D]', a_t=a_t, dqda_t=dqda_t)
  if max_norm is not None:
    dqda_t = tf.clip_by_norm(dqda_t, max_norm, axes=[-1])
  # The actions are subtracted first: added to them, a small ∂q/∂a rounds off.
  errors = tf.stop_gradient(dqda_t) + (tf.stop_gradient(a_t) - a_t)  # [B, D]
  return tf.reduce_mean(0.5 * tf.reduce_sum(errors**2, axis=-1))
