"""Q-learning over sequences, and value rescaling (R2D2).

Sequences are `[T, B]`: entry t is of the step from x_t to x_{t+1}. Values are
`[T + 1, B, ...]`, because the state after the last step is bootstrapped from.
"""

from collections.abc import Callable

import tensorflow as tf

from repertory.components.losses import shape_checks


def n_step_returns(
  rewards: tf.Tensor,
  discounts: tf.Tensor,
  values: tf.Tensor,
  mask: tf.Tensor,
  n_step: int,
) -> tf.Tensor:
  """n-step returns of R2D2, r_t + γ_t r_{t+1} + … + γ_t ⋯ γ_{t+k−1} V(x_{t+k}).

  k is n, or less where the sequence or the mask ends earlier: there, the return
  bootstraps from the last value. See
  https://openreview.net/forum?id=r1lyTjAqYX, section 2.3. Rewards, discounts γ,
  0 where the episode ends in x_{t+1}, and mask are `[T, B]`, values
  `[T + 1, B]`; returns `[T, B]`, V(x_t) outside the mask.
  """
  shape_checks.check_shapes(
    rewards=rewards, discounts=discounts, values_but_last=values[:-1], mask=mask
  )
  returns = values  # [T + 1, B], 0-step returns.
  for _ in range(n_step):
    # One step longer; outside the mask the return remains the value.
    longer = tf.where(mask, rewards + discounts * returns[1:], values[:-1])
    returns = tf.concat([longer, values[-1:]], axis=0)
  return returns[:-1]


def sequence_double_q_errors(  # noqa: PLR0913 - the symbols of its equation.
  q: tf.Tensor,
  actions: tf.Tensor,
  rewards: tf.Tensor,
  discounts: tf.Tensor,
  target_q: tf.Tensor,
  mask: tf.Tensor,
  n_step: int,
  transform: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
  inverse_transform: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
) -> tf.Tensor:
  """R2D2 errors h(G_t) − q(x_t, a_t) of n-step double Q-learning returns G_t.

  G bootstraps from h⁻¹(q_target(x, argmax_a q(x, a))). No gradient flows into
  G. See https://openreview.net/forum?id=r1lyTjAqYX, equation 1 and section
  2.3.

  Args:
    q: Online network's values, `[T + 1, B, A]`.
    actions: a_t, integer `[T, B]`.
    rewards: r_t, `[T, B]`.
    discounts: γ_t, 0 where the episode ends in x_{t+1}, `[T, B]`.
    target_q: Target network's values, `[T + 1, B, A]`.
    mask: Bool `[T, B]`, false for padding.
    n_step: n, at least 1.
    transform: h, such as `rescale`.
    inverse_transform: h⁻¹.

  Returns:
    TD errors, `[T, B]`, positive where the value is too low; 0 outside the
    mask.
  """
  shape_checks.check_shapes('[T + 1, B, A]', q=q, target_q=target_q)
  shape_checks.check_shapes(rewards=rewards, actions=actions, mask=mask)
  best = tf.argmax(q, axis=-1, output_type=tf.int32)  # [T + 1, B]
  values = inverse_transform(tf.gather(target_q, best, batch_dims=2))
  returns = n_step_returns(rewards, discounts, values, mask, n_step)
  # tf.gather does not support small or unsigned integers.
  chosen = tf.gather(q[:-1], tf.cast(actions, tf.int32), batch_dims=2)
  errors = tf.stop_gradient(transform(returns)) - chosen  # [T, B]
  return tf.where(mask, errors, tf.zeros_like(errors))


def sequence_priorities(
  errors: tf.Tensor, mask: tf.Tensor, max_share: float
) -> tf.Tensor:
  """Sequence priorities of R2D2, η max_t |δ_t| + (1 − η) mean_t |δ_t|, `[B]`.

  Errors δ and mask are `[T, B]`, η is `max_share`. 0 where the mask is empty.
  See https://openreview.net/forum?id=r1lyTjAqYX, section 2.3.
  """
  shape_checks.check_shapes(errors=errors, mask=mask)
  sizes = tf.where(mask, tf.abs(errors), tf.zeros_like(errors))
  counts = tf.reduce_sum(tf.cast(mask, sizes.dtype), axis=0)  # [B]
  means = tf.reduce_sum(sizes, axis=0) / tf.maximum(counts, 1)  # [B]
  return max_share * tf.reduce_max(sizes, axis=0) + (1 - max_share) * means


def rescale(x: tf.Tensor, epsilon: float) -> tf.Tensor:
  """Value rescaling, h(x) = sign(x) (√(|x| + 1) − 1) + ε x.

  Accurate in single precision near 0, where the formula subtracts nearly equal
  numbers. The inverse's slope is at most 1 / ε. See
  https://arxiv.org/abs/1805.11593, section 3.2.
  """
  # sign(x) (√(|x| + 1) − 1), multiplied and divided by √(|x| + 1) + 1.
  return x / (tf.sqrt(tf.abs(x) + 1) + 1) + epsilon * x


def inverse_rescale(x: tf.Tensor, epsilon: float) -> tf.Tensor:
  """Inverse of `rescale`, sign(x) (((√(1 + 4ε (|x| + 1 + ε)) − 1) / 2ε)² − 1).

  As accurate near 0. See https://arxiv.org/abs/1805.11593, proposition A.2.
  """
  # With u = √(|h⁻¹| + 1) − 1, |x| = ε u² + (1 + 2ε) u and |h⁻¹| = u² + 2u.
  slope = 1 + 2 * epsilon
  size = tf.abs(x)
  u_per_size = 2 / (slope + tf.sqrt(slope**2 + 4 * epsilon * size))
  u = size * u_per_size
  # sign(x) u (u + 2), with x instead of sign(x), for the slope at 0.
  return x * (u_per_size * (u + 2))
