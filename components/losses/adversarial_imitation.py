"""Imitation by a discriminator, which tells demonstrations from one's own.

With the logit l of a step, D = σ(l) is the probability that it is demonstrated.
"""

import tensorflow as tf

from repertory.components.losses import masking, ranks


def discriminator_loss(
  logits: tf.Tensor, is_demonstration: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Computes −E_data[log D] − E_own[log(1 − D)], each over its own steps.

  So it does not matter how many there are of either. See
  https://arxiv.org/abs/1606.03476, equation 16, where D is that of one's own.

  Args:
    logits: l, `[N]`.
    is_demonstration: Bool `[N]`.
    mask: Bool `[N]`: which steps happened.

  Returns:
    A scalar.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(
    logits=(logits, 1), is_demonstration=(is_demonstration, 1), mask=(mask, 1)
  )
  # −log σ(l) = softplus(−l), and −log(1 − σ(l)) = softplus(l).
  of_data = masking.masked_mean(
    tf.nn.softplus(-logits), mask & is_demonstration
  )
  of_own = masking.masked_mean(tf.nn.softplus(logits), mask & ~is_demonstration)
  return of_data + of_own


def gradient_penalty(gradients: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Computes E[(‖g‖ − 1)²], to keep a discriminator from being too steep.

  See https://arxiv.org/abs/1704.00028, equation 3.

  Args:
    gradients: g of the logits by all inputs, at points between demonstrations
      and one's own, `[N, F]`.
    mask: Bool `[N]`: which count.

  Returns:
    A scalar. Its own gradient is finite where g is 0.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(gradients=(gradients, 2), mask=(mask, 1))
  squares = tf.reduce_sum(gradients**2, axis=-1)  # [N]
  norms = tf.sqrt(squares + 1e-12)
  return masking.masked_mean((norms - 1) ** 2, mask)


def imitation_rewards(logits: tf.Tensor, kind: str) -> tf.Tensor:
  """Computes rewards for what looks like a demonstration.

  Args:
    logits: l, in any shape.
    kind: 'gail' for −log(1 − D), which is never negative, so that it pays to go
      on (https://arxiv.org/abs/1606.03476); 'airl' for log D − log(1 − D) = l,
      which has both signs (https://arxiv.org/abs/1710.11248, and
      https://arxiv.org/abs/1809.02925, section 4.1).

  Returns:
    Rewards, in the shape of `logits`; no gradient flows through them.

  Raises:
    ValueError: If the kind is unknown.
  """
  if kind not in ('gail', 'airl'):
    raise ValueError(f"kind must be 'gail' or 'airl', got {kind!r}.")
  logits = tf.stop_gradient(logits)
  return tf.nn.softplus(logits) if kind == 'gail' else logits
