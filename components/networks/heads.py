"""From features to action values."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf


class DuelingHead(snt.Module):
  """Computes q(s, a) = v(s) + A(s, a) − mean_a A(s, a).

  See https://arxiv.org/abs/1511.06581, equation 9.
  """

  def __init__(
    self,
    num_actions: int,
    hidden_sizes: Sequence[int] = (),
    name: str = 'dueling_head',
  ):
    """Makes a stream for the state's value and one for the advantages.

    Args:
      num_actions: A.
      hidden_sizes: Layers of each stream before its output.
      name: Of the module.
    """
    super().__init__(name=name)
    self._value = snt.nets.MLP([*hidden_sizes, 1], name='value')
    self._advantage = snt.nets.MLP(
      [*hidden_sizes, num_actions], name='advantage'
    )

  def __call__(self, features: tf.Tensor) -> tf.Tensor:
    """Maps features `[B, D]` to action values `[B, A]`."""
    value = self._value(features)  # [B, 1]
    advantage = self._advantage(features)  # [B, A]
    mean = tf.reduce_mean(advantage, axis=-1, keepdims=True)  # [B, 1]
    return value + advantage - mean  # [B, A]
