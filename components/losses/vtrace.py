"""V-trace (IMPALA): off-policy value targets and advantages.

Symbols are those of https://arxiv.org/abs/1802.01561, section 4.1. All
sequences are `[T, B]`: entry t is of the step from x_t to x_{t+1}.

A step outside the mask has δ = c = 0, so v_s = V(x_s) there, and earlier steps
bootstrap from that value. So truncated episodes bootstrap from their last
value, and a sequence may hold several episodes.
"""

from typing import NamedTuple

import tensorflow as tf

from repertory.components.losses import masking, recurrence
from repertory.components.losses.importance import importance_ratios


class VTrace(NamedTuple):
  """V-trace targets, advantages and ratios, without gradients.

  Attributes:
    targets: v_s, the targets of the values, `[T, B]`.
    advantages: min(ρ̄_pg, π/μ) (r_s + γ v_{s+1} − V(x_s)), `[T, B]`; 0 outside
      the mask.
    ratios: π/μ, clipped only at e^20, `[T, B]`; 0 outside the mask.
  """

  targets: tf.Tensor
  advantages: tf.Tensor
  ratios: tf.Tensor


def vtrace(  # noqa: PLR0913 - the symbols of its equation.
  target_log_probs: tf.Tensor,
  behavior_log_probs: tf.Tensor,
  rewards: tf.Tensor,
  discounts: tf.Tensor,
  values: tf.Tensor,
  bootstrap_value: tf.Tensor,
  mask: tf.Tensor,
  *,
  max_rho: float = 1.0,
  max_pg_rho: float = 1.0,
  max_c: float = 1.0,
  lambda_: float = 1.0,
) -> VTrace:
  """Computes V-trace targets and policy-gradient advantages.

  v_s = V(x_s) + Σ_{t≥s} (Π_{s≤i<t} γ_i c_i) δ_t with
  δ_t = ρ_t (r_t + γ_t V(x_{t+1}) − V(x_t)), ρ_t = min(ρ̄, π/μ) and
  c_t = λ min(c̄, π/μ): equation 1, remarks 2 and 3, and section 4.2 for the
  advantages.

  Args:
    target_log_probs: log π(a_t | x_t), `[T, B]`.
    behavior_log_probs: log μ(a_t | x_t), `[T, B]`.
    rewards: r_t, received after the actions, `[T, B]`.
    discounts: γ_t, 0 where the episode ends in x_{t+1}, `[T, B]`.
    values: V(x_t), `[T, B]`.
    bootstrap_value: V(x_T), `[B]`.
    mask: Bool `[T, B]`, false for padding; see `types.Sequence`.
    max_rho: ρ̄, at least `max_c`.
    max_pg_rho: ρ̄_pg.
    max_c: c̄.
    lambda_: λ, in [0, 1].

  Raises:
    ValueError: If a shape or bound is invalid.
  """
  masking.check_shapes(
    target_log_probs=target_log_probs,
    rewards=rewards,
    discounts=discounts,
    values=values,
    mask=mask,
  )
  masking.check_bootstrap_value(bootstrap_value, values)
  _check_bounds(max_rho, max_c, lambda_)
  zeros = tf.zeros_like(values)
  ratios = importance_ratios(target_log_probs, behavior_log_probs, mask)
  ratios = tf.where(mask, ratios, zeros)
  next_values = tf.concat([values[1:], bootstrap_value[None]], axis=0)  # [T, B]
  errors = rewards + discounts * next_values - values  # [T, B]
  targets = values + recurrence.backward_recurrence(
    tf.where(mask, tf.minimum(ratios, max_rho) * errors, zeros),
    tf.where(mask, discounts * lambda_ * tf.minimum(ratios, max_c), zeros),
  )  # [T, B]
  next_targets = tf.concat([targets[1:], bootstrap_value[None]], axis=0)
  gains = rewards + discounts * next_targets - values  # [T, B]
  advantages = tf.where(mask, tf.minimum(ratios, max_pg_rho) * gains, zeros)
  return VTrace(*map(tf.stop_gradient, (targets, advantages, ratios)))


def _check_bounds(max_rho: float, max_c: float, lambda_: float) -> None:
  if not max_rho >= max_c >= 0:
    raise ValueError(
      f'max_rho must be at least max_c, and max_c at least 0, got {max_rho} '
      f'and {max_c}.'
    )
  if not 0 <= lambda_ <= 1:
    raise ValueError(f'lambda_ must be in [0, 1], got {lambda_}.')
