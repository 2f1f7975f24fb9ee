"""MLP with layer normalization of every layer."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf


class NormalizedMLP(snt.Module):
  """MLP of linear layers, each with layer normalization and ReLU.

  Layer normalization (https://arxiv.org/abs/1607.06450) stabilizes Q-learning
  without target networks: PQN, https://arxiv.org/abs/2407.04811, section 3.2.
  """

  def __init__(self, hidden_sizes: Sequence[int], name: str = 'normalized_mlp'):
    """Creates the layers; the first call creates their variables.

    Args:
      hidden_sizes: Sizes of the layers; the last one is D.
    """
    super().__init__(name=name)
    self._sizes = list(hidden_sizes)
    self._layers = [
      (
        snt.Linear(size, name=f'linear_{i}'),
        snt.LayerNorm(
          axis=-1, create_scale=True, create_offset=True, name=f'norm_{i}'
        ),
      )
      for i, size in enumerate(hidden_sizes)
    ]

  def __call__(
    self, inputs: tf.Tensor, mask: tf.Tensor | None = None
  ) -> tf.Tensor:
    """Maps inputs to features.

    Args:
      inputs: `[B, F]`.
      mask: Dropout mask, multiplied with the outputs of the linear layers
        before normalization (https://arxiv.org/abs/2110.02034), `[B, S]` with S
        the sum of the sizes. None for no dropout.

    Returns:
      `[B, D]`.
    """
    masks = [None] * len(self._layers)
    if mask is not None:
      masks = tf.split(mask, self._sizes, axis=-1)
    for (linear, norm), factors in zip(self._layers, masks):
      outputs = linear(inputs)
      if factors is not None:
        outputs *= factors
      inputs = tf.nn.relu(norm(outputs))
    return inputs
