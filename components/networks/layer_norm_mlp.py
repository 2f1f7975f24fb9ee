"""MLP with layer normalization of the first layer (Acme)."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf


class LayerNormMLP(snt.Module):
  """MLP of Acme: layer normalization and tanh after the first layer, then ELU.

  Large inputs do not saturate later layers, from which a policy that ends in
  tanh would not recover. See https://arxiv.org/abs/1607.06450 and
  https://arxiv.org/abs/2006.00979.
  """

  def __init__(self, hidden_sizes: Sequence[int], name: str = 'layer_norm_mlp'):
    """Creates the layers; the first call creates their variables.

    Args:
      hidden_sizes: Sizes of the layers, at least one; the last one is D.
    """
    super().__init__(name=name)
    first, *others = hidden_sizes
    self._linear = snt.Linear(first, name='first')
    self._norm = snt.LayerNorm(axis=-1, create_scale=True, create_offset=True)
    self._mlp = snt.nets.MLP(others, activation=tf.nn.elu, activate_final=True)

  def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
    """Maps inputs `[B, F]` to features `[B, D]`."""
    return self._mlp(tf.tanh(self._norm(self._linear(inputs))))
