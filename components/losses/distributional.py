"""Distributional RL: categorical (C51) and quantile regression (QR-DQN, IQN).

A categorical distribution is a vector of probabilities of N evenly spaced
atoms, z_1 < … < z_N: https://arxiv.org/abs/1707.06887. The quantile of τ is the
return that a fraction τ of all returns does not exceed; quantiles need no
support to be chosen.
"""

import tensorflow as tf

from repertory.components.losses import q_learning, shape_checks


def categorical_projection(
  z_p: tf.Tensor, probs: tf.Tensor, z_q: tf.Tensor
) -> tf.Tensor:
  """Categorical projection of C51 onto a fixed support.

  Atoms beyond the support are clipped to its ends. The probability of an atom
  between two atoms of the support is split between them such that the mean is
  preserved:

    q_i = Σ_j max(0, 1 − |[z_p_j] − z_q_i| / Δz) p_j

  where [·] clips to the support. See https://arxiv.org/abs/1707.06887,
  equation 7. Atoms z_p and their probabilities are `[B, N]`, the atoms z_q of
  the support, evenly spaced and ascending, `[M]`, M ≥ 2.
  """
  shape_checks.check_ranks(z_p=(z_p, 2), probs=(probs, 2), z_q=(z_q, 1))
  size, num_atoms = tf.shape(z_p)[0], tf.shape(z_q)[0]
  spacing = z_q[1] - z_q[0]
  limited = tf.clip_by_value(z_p, z_q[0], z_q[-1])  # [B, N]
  positions = (limited - z_q[0]) / spacing  # [B, N], from 0 to M - 1
  # Clipped again because NaN is cast to an arbitrary integer.
  below = tf.clip_by_value(tf.cast(positions, tf.int32), 0, num_atoms - 2)
  # Clipped against rounding errors: probabilities must not be negative.
  above_share = tf.clip_by_value(
    (limited - tf.gather(z_q, below)) / spacing, 0, 1
  )  # [B, N]
  # Two segment sums instead of a sum over all pairs of atoms.
  shares = tf.stack([probs * (1 - above_share), probs * above_share])
  indices = num_atoms * tf.range(size)[:, None] + below  # [B, N]
  sums = tf.math.unsorted_segment_sum(
    shares, tf.stack([indices, indices + 1]), size * num_atoms
  )  # [B · M]
  return tf.reshape(sums, [size, num_atoms])


def categorical_td_targets(
  r_t: tf.Tensor, discount_t: tf.Tensor, logits_t: tf.Tensor, z: tf.Tensor
) -> tf.Tensor:
  """Categorical TD targets (C51): r + γ Z(s', a') projected onto the support.

  See https://arxiv.org/abs/1707.06887, algorithm 1. Rewards and discounts, γ
  included, are `[B]`, logits of Z `[B, N]`, atoms z of the support `[N]`. No
  gradient flows into the targets, probabilities `[B, N]`.
  """
  shape_checks.check_ranks(r_t=(r_t, 1), discount_t=(discount_t, 1))
  shape_checks.check_ranks(logits_t=(logits_t, 2), z=(z, 1))
  z_p = r_t[:, None] + discount_t[:, None] * z  # [B, N]
  target = categorical_projection(z_p, tf.nn.softmax(logits_t), z)
  return tf.stop_gradient(target)  # [B, N]


def categorical_mixture_targets(
  r_t: tf.Tensor,
  discount_t: tf.Tensor,
  logits_t: tf.Tensor,
  weights_t: tf.Tensor,
  bonuses_t: tf.Tensor,
  z: tf.Tensor,
) -> tf.Tensor:
  """Categorical TD targets of a mixture over actions, r + γ (Z(s', a) + b_a).

  The atoms of each action are shifted by its bonus, and its probabilities are
  weighted by the action's. With a single action of weight 1 and bonus 0 this is
  `categorical_td_targets`. Logits of K actions are `[B, K, N]`, probabilities
  of the actions and bonuses b `[B, K]`; for the others see there.
  """
  shape_checks.check_ranks(r_t=(r_t, 1), discount_t=(discount_t, 1), z=(z, 1))
  shape_checks.check_ranks(logits_t=(logits_t, 3), weights_t=(weights_t, 2))
  shape_checks.check_ranks(bonuses_t=(bonuses_t, 2))
  moved = z + bonuses_t[:, :, None]  # [B, K, N]
  z_p = r_t[:, None, None] + discount_t[:, None, None] * moved
  probs = weights_t[:, :, None] * tf.nn.softmax(logits_t)
  shape = [tf.shape(r_t)[0], logits_t.shape[1] * logits_t.shape[2]]
  target = categorical_projection(
    tf.reshape(z_p, shape), tf.reshape(probs, shape), z
  )
  return tf.stop_gradient(target)  # [B, N]


def categorical_divergence(
  target_probs: tf.Tensor, logits: tf.Tensor
) -> tf.Tensor:
  """Categorical TD loss (C51), KL(p ‖ q) = Σ_i p_i (log p_i − log q_i).

  Probabilities p and logits of q are `[B, N]`, divergences `[B]`. With constant
  p the gradient is that of the cross-entropy.
  """
  shape_checks.check_ranks(target_probs=(target_probs, 2), logits=(logits, 2))
  # xlogy is 0 where p is.
  negative_entropy = tf.math.xlogy(target_probs, target_probs)  # [B, N]
  cross = target_probs * tf.nn.log_softmax(logits)  # [B, N]
  return tf.reduce_sum(negative_entropy - cross, axis=-1)  # [B]


def categorical_mean(logits: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
  """Expected return of a categorical distribution, Σ_i q_i z_i, `[...]`.

  Logits of q are `[..., N]`, atoms of the support `[N]`.
  """
  shape_checks.check_ranks(z=(z, 1))
  return tf.reduce_sum(tf.nn.softmax(logits) * z, axis=-1)


def quantile_midpoints(num_quantiles: int) -> tf.Tensor:
  """Quantile midpoints of QR-DQN, τ̂_i = (i + ½) / N for i = 0, …, N − 1.

  See https://arxiv.org/abs/1710.10044, lemma 2. Returns float32 `[N]`.
  """
  return (tf.range(num_quantiles, dtype=tf.float32) + 0.5) / num_quantiles


def quantile_huber(
  quantiles: tf.Tensor, taus: tf.Tensor, targets: tf.Tensor, threshold: float
) -> tf.Tensor:
  """Quantile Huber loss (QR-DQN, IQN), summed over quantiles.

    Σ_i mean_j |τ_i − 1{u_ij < 0}| huber(u_ij) / κ   with u_ij = y_j − θ_i

  See https://arxiv.org/abs/1710.10044, equation 10, and, with the division by
  κ, the threshold, https://arxiv.org/abs/1806.06923, equation 3. Quantiles θ
  are `[B, N]`, their τ `[B, N]` or `[1, N]`, the targets y, samples or
  quantiles, `[B, M]`, without gradients; losses are `[B]`.
  """
  shape_checks.check_ranks(quantiles=(quantiles, 2), taus=(taus, 2))
  shape_checks.check_ranks(targets=(targets, 2))
  targets = tf.stop_gradient(targets)
  errors = targets[:, None, :] - quantiles[:, :, None]  # [B, N, M]
  is_too_high = tf.cast(errors < 0, errors.dtype)  # [B, N, M]
  weights = tf.abs(taus[:, :, None] - is_too_high)  # [B, N, M]
  losses = weights * q_learning.huber(errors, threshold) / threshold
  return tf.reduce_sum(tf.reduce_mean(losses, axis=2), axis=1)  # [B]
