"""Advantages and value targets: GAE and V-trace.

Symbols are those of https://arxiv.org/abs/1506.02438, equations 9, 10 and 16,
and of https://arxiv.org/abs/1802.01561, section 4.1. All sequences are
`[T, B]`: entry t is of the step from x_t to x_{t+1}.

A step outside the mask has δ = c = 0 and propagates nothing backward. So
truncated episodes bootstrap from their last value, and a sequence may hold
several episodes.
"""

from typing import NamedTuple

import tensorflow as tf

from repertory.components.losses import shape_checks
from repertory.components.losses.policy_gradient import importance_ratios


def backward_recurrence(terms: tf.Tensor, decays: tf.Tensor) -> tf.Tensor:
  """Parallel scan of the recurrence y_t = x_t + a_t y_{t+1} with y_T = 0.

  Affine maps compose, so ⌈log2 T⌉ parallel steps replace T sequential ones: see
  https://doi.org/10.1145/7902.7903. All are `[T, ...]`, with T known.
  """
  length = terms.shape[0]
  reach = 1
  while reach < length:
    # Each entry already sums `reach` entries; add the next `reach` ones.
    terms += decays * _shifted(terms, reach)
    decays *= _shifted(decays, reach)
    reach *= 2
  return terms


def _shifted(values: tf.Tensor, steps: int) -> tf.Tensor:
  """Shifts entries by `steps` towards the start, padding the end with 0."""
  return tf.concat([values[steps:], tf.zeros_like(values[:steps])], axis=0)


class Advantages(NamedTuple):
  """Estimated advantages and value targets, without gradients.

  Attributes:
    advantages: A_t, `[T, B]`; 0 outside the mask.
    targets: A_t + V(x_t), the λ-returns that the values regress onto,
      `[T, B]`; V(x_t) outside the mask.
  """

  advantages: tf.Tensor
  targets: tf.Tensor


def generalized_advantages(
  rewards: tf.Tensor,
  discounts: tf.Tensor,
  values: tf.Tensor,
  bootstrap_value: tf.Tensor,
  mask: tf.Tensor,
  *,
  lambda_: float,
) -> Advantages:
  """GAE(λ): advantages A_t and λ-returns.

  A_t = Σ_{l≥0} (Π_{i<l} λ γ_{t+i}) δ_{t+l}, up to the end of the mask, with
  δ_t = r_t + γ_t V(x_{t+1}) − V(x_t).

  Args:
    rewards: r_t, received after the actions, `[T, B]`.
    discounts: γ_t, 0 where the episode ends in x_{t+1}, `[T, B]`.
    values: V(x_t), `[T, B]`.
    bootstrap_value: V(x_T), `[B]`.
    mask: Bool `[T, B]`, false for padding and for steps from an episode's last
      observation to the first one of the next episode.
    lambda_: λ, in [0, 1]: variance is least at 0, bias at 1.
  """
  errors = _td_errors(rewards, discounts, values, bootstrap_value, mask)
  zeros = tf.zeros_like(values)
  advantages = backward_recurrence(
    tf.where(mask, errors, zeros), tf.where(mask, lambda_ * discounts, zeros)
  )  # [T, B]
  targets = advantages + values  # [T, B]
  return Advantages(*map(tf.stop_gradient, (advantages, targets)))


def _td_errors(rewards, discounts, values, bootstrap_value, mask) -> tf.Tensor:
  """Checks shapes, and returns r_t + γ_t V(x_{t+1}) − V(x_t), `[T, B]`."""
  shape_checks.check_shapes(
    rewards=rewards, discounts=discounts, values=values, mask=mask
  )
  shape_checks.check_shapes(
    '[B]', values=values[0], bootstrap_value=bootstrap_value
  )
  next_values = tf.concat([values[1:], bootstrap_value[None]], axis=0)  # [T, B]
  return rewards + discounts * next_values - values


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
  """
  errors = _td_errors(rewards, discounts, values, bootstrap_value, mask)
  zeros = tf.zeros_like(values)
  ratios = importance_ratios(target_log_probs, behavior_log_probs, mask)
  ratios = tf.where(mask, ratios, zeros)
  targets = values + backward_recurrence(
    tf.where(mask, tf.minimum(ratios, max_rho) * errors, zeros),
    tf.where(mask, discounts * lambda_ * tf.minimum(ratios, max_c), zeros),
  )  # [T, B]
  next_targets = tf.concat([targets[1:], bootstrap_value[None]], axis=0)
  gains = rewards + discounts * next_targets - values  # [T, B]
  advantages = tf.where(mask, tf.minimum(ratios, max_pg_rho) * gains, zeros)
  return VTrace(*map(tf.stop_gradient, (targets, advantages, ratios)))
