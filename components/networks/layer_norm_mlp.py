"""An MLP whose first layer is normalized."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf


class LayerNormMLP(snt.Module):
  """Normalizes and bounds what the first layer says; an ELU after each other.

  So inputs of any size do not saturate what follows, which a policy that ends
  in tanh would not recover from. See https://arxiv.org/abs/1607.06450; the
  order of layers is that of Acme, https://arxiv.org/abs/2006.00979.
  """

  def __init__(self, hidden_sizes: Sequence[int], name: str = 'layer_norm_mlp'):
    """Makes the layers; their variables come with the first call.

    Args:
      hidden_sizes: At least one; the last one's size is D.
    """
    super().__init__(name=name)
    first, *others = hidden_sizes
    self._linear = snt.Linear(first, name='first')
    self._norm = snt.LayerNorm(axis=-1, create_scale=True, create_offset=True)
    self._mlp = snt.nets.MLP(others, activation=tf.nn.elu, activate_final=True)

  def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
    """Maps inputs `[B, F]` to features `[B, D]`."""
    return self._mlp(tf.tanh(self._norm(self._linear(inputs))))
