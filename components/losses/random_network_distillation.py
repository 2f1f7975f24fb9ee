"""Intrinsic reward of random network distillation (RND)."""

import tensorflow as tf

from repertory.components.losses import shape_checks


def prediction_errors(predicted: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
  """RND prediction error, the mean of (f̂(x) − f(x))² over the embedding.

  With a fixed random f that f̂ learns to predict, errors are large for novel
  observations: https://arxiv.org/abs/1810.12894, section 2.2. No gradient flows
  into f.

  Args:
    predicted: f̂(x), `[N, E]`.
    target: f(x), `[N, E]`.

  Returns:
    Errors, `[N]`.

  Raises:
    ValueError: If a shape is invalid.
  """
  shape_checks.check_ranks(predicted=(predicted, 2), target=(target, 2))
  differences = predicted - tf.stop_gradient(target)  # [N, E]
  return tf.reduce_mean(differences**2, axis=-1)
