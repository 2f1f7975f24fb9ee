"""Residual blocks that keep a large network simple."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf

# Of a block's inner layer, in sizes of the block.
_EXPANSION = 4


class SimBa(snt.Module):
  """A linear layer, residual blocks and a layer normalization.

  A block adds to its inputs what two layers, a ReLU between them, make of the
  normalized inputs. So what an observation says reaches the end by a linear
  road, and larger networks learn no worse: https://arxiv.org/abs/2410.09754,
  section 4. The running normalization of observations there is not part of it.
  """

  def __init__(self, hidden_sizes: Sequence[int], name: str = 'simba'):
    """Makes the layers; their variables come with the first call.

    Args:
      hidden_sizes: One for each block, all of them D; at least one.

    Raises:
      ValueError: If there is none, or if they differ.
    """
    super().__init__(name=name)
    if len(set(hidden_sizes)) != 1:
      raise ValueError(
        'hidden_sizes must be at least one size, the same for each block, got '
        f'{hidden_sizes}.'
      )
    self._linear = snt.Linear(
      hidden_sizes[0], w_init=snt.initializers.Orthogonal(), name='linear'
    )
    self._blocks = [
      _Block(size, name=f'block_{i}') for i, size in enumerate(hidden_sizes)
    ]
    self._norm = _make_norm()

  def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
    """Maps inputs `[B, F]` to features `[B, D]`."""
    features = self._linear(inputs)  # [B, D]
    for block in self._blocks:
      features += block(features)
    return self._norm(features)


class _Block(snt.Module):
  """What a block adds to its inputs."""

  def __init__(self, size: int, name: str):
    super().__init__(name=name)
    # Of He et al., for a ReLU: https://arxiv.org/abs/1502.01852.
    w_init = snt.initializers.VarianceScaling(2.0, 'fan_in')
    self._norm = _make_norm()
    self._inner = snt.Linear(_EXPANSION * size, w_init=w_init, name='inner')
    self._outer = snt.Linear(size, w_init=w_init, name='outer')

  def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
    hidden = tf.nn.relu(self._inner(self._norm(inputs)))  # [B, 4 D]
    return self._outer(hidden)  # [B, D]


def _make_norm() -> snt.LayerNorm:
  return snt.LayerNorm(axis=-1, create_scale=True, create_offset=True)
