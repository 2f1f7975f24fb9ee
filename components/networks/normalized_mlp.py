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
    self._layers = [
      (
        snt.Linear(size, name=f'linear_{i}'),
        snt.LayerNorm(
          axis=-1, create_scale=True, create_offset=True, name=f'norm_{i}'
        ),
      )
      for i, size in enumerate(hidden_sizes)
    ]

  def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
    """Maps inputs `[B, F]` to features `[B, D]`."""
    for linear, norm in self._layers:
      inputs = tf.nn.relu(norm(linear(inputs)))
    return inputs
