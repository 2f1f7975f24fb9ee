"""How new observations are, to one who has learned from those before."""

import tensorflow as tf

from repertory.components.losses import ranks


def prediction_errors(predicted: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
  """Computes the mean over an embedding of (f̂(x) − f(x))².

  For a fixed random f that f̂ is trained to predict, they are large where little
  was seen: random network distillation, https://arxiv.org/abs/1810.12894,
  section 2.2. No gradient flows into f.

  Args:
    predicted: f̂(x), `[N, E]`.
    target: f(x), `[N, E]`.

  Returns:
    Errors, `[N]`.

  Raises:
    ValueError: If a shape does not fit.
  """
  ranks.check_ranks(predicted=(predicted, 2), target=(target, 2))
  differences = predicted - tf.stop_gradient(target)  # [N, E]
  return tf.reduce_mean(differences**2, axis=-1)
