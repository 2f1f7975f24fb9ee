"""Losses and rewards of learned reward models: GAIL, AIRL and RND.

D = σ(l) is the probability that a step with logit l is a demonstration.
"""

import tensorflow as tf

from repertory.components.config import choices
from repertory.components.losses import shape_checks


def discriminator_loss(
  logits: tf.Tensor, is_demonstration: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """GAIL discriminator loss, −E_data[log D] − E_policy[log(1 − D)].

  Each mean is over its own steps, so the ratio of demonstrations to policy
  steps does not matter. See https://arxiv.org/abs/1606.03476, equation 16,
  where D is the probability of a policy step. All are `[N]`; the mask is false
  for padding.
  """
  shape_checks.check_ranks(
    logits=(logits, 1), is_demonstration=(is_demonstration, 1), mask=(mask, 1)
  )
  # −log σ(l) = softplus(−l), and −log(1 − σ(l)) = softplus(l).
  demonstration_loss = shape_checks.masked_mean(
    tf.nn.softplus(-logits), mask & is_demonstration
  )
  policy_loss = shape_checks.masked_mean(
    tf.nn.softplus(logits), mask & ~is_demonstration
  )
  return demonstration_loss + policy_loss


def gradient_penalty(gradients: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Gradient penalty of WGAN-GP, E[(‖g‖ − 1)²].

  See https://arxiv.org/abs/1704.00028, equation 3. The g are gradients of the
  logits by the inputs, at interpolations of demonstrations and policy steps,
  `[N, F]`; the mask `[N]` is false for padding.
  """
  shape_checks.check_ranks(gradients=(gradients, 2), mask=(mask, 1))
  squares = tf.reduce_sum(gradients**2, axis=-1)  # [N]
  norms = tf.sqrt(squares + 1e-12)
  return shape_checks.masked_mean((norms - 1) ** 2, mask)


def imitation_rewards(logits: tf.Tensor, kind: str) -> tf.Tensor:
  """Computes GAIL or AIRL rewards from discriminator logits.

  Args:
    logits: l, of any shape.
    kind: 'gail' for −log(1 − D), which is never negative and so rewards long
      episodes (https://arxiv.org/abs/1606.03476); 'airl' for log D − log(1 − D)
      = l, which has both signs (https://arxiv.org/abs/1710.11248, and
      https://arxiv.org/abs/1809.02925, section 4.1). No gradient flows through.
  """
  choices.check('kind', kind, ('gail', 'airl'))
  logits = tf.stop_gradient(logits)
  return tf.nn.softplus(logits) if kind == 'gail' else logits


def prediction_errors(predicted: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
  """RND prediction error, the mean of (f̂(x) − f(x))² over the embedding.

  See https://arxiv.org/abs/1810.12894, section 2.2. No gradient flows into f.
  Embeddings are `[N, E]`, errors `[N]`.
  """
  shape_checks.check_ranks(predicted=(predicted, 2), target=(target, 2))
  differences = predicted - tf.stop_gradient(target)  # [N, E]
  return tf.reduce_mean(differences**2, axis=-1)
