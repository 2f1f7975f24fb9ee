"""An MLP each of whose layers is normalized."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf


class NormalizedMLP(snt.Module):
  """Linear, layer normalization, ReLU; and so again for each size.

  Normalized layers keep Q-learning without target networks from diverging:
  https://arxiv.org/abs/2407.04811, section 3.2. The normalization is that of
  https://arxiv.org/abs/1607.06450.
  """

  def __init__(self, hidden_sizes: Sequence[int], name: str = 'normalized_mlp'):
    """Makes the layers; their variables come with the first call.

    Args:
      hidden_sizes: The last one's size is D.
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
      mask: What the outputs of all linear layers, side by side, are multiplied
        with, `[B, S]`, where S is the sum of the sizes: for dropout before
        normalization, https://arxiv.org/abs/2110.02034. None leaves them.

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
