"""SimBa: residual MLP with layer normalization."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf

# Width of the inner layer of a block, relative to the block.
_EXPANSION = 4


class SimBa(snt.Module):
  """SimBa: a linear layer, residual blocks and a final layer normalization.

  A block adds to its inputs the outputs of a two-layer MLP on the normalized
  inputs. The linear path from inputs to outputs makes larger networks learn
  well: https://arxiv.org/abs/2410.09754, section 4. The paper's running
  normalization of observations is not included.
  """

  def __init__(self, hidden_sizes: Sequence[int], name: str = 'simba'):
    """Creates the layers; the first call creates their variables.

    Args:
      hidden_sizes: Sizes of the blocks, all of them D; at least one.

    Raises:
      ValueError: If the sizes differ or there is no size.
    """
    super().__init__(name=name)
    if len(set(hidden_sizes)) != 1:
      raise ValueError(
        'hidden_sizes must be one or more equal sizes, one for each block, got '
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
  """Residual branch of a block."""

  def __init__(self, size: int, name: str):
    super().__init__(name=name)
    # He initialization, for ReLU: https://arxiv.org/abs/1502.01852.
    w_init = snt.initializers.VarianceScaling(2.0, 'fan_in')
    self._norm = _make_norm()
    self._inner = snt.Linear(_EXPANSION * size, w_init=w_init, name='inner')
    self._outer = snt.Linear(size, w_init=w_init, name='outer')

  def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
    hidden = tf.nn.relu(self._inner(self._norm(inputs)))  # [B, 4 D]
    return self._outer(hidden)  # [B, D]


def _make_norm() -> snt.LayerNorm:
  return snt.LayerNorm(axis=-1, create_scale=True, create_offset=True)
