"""Sum tree for prioritized sampling inside a compiled program."""

import tensorflow as tf

from repertory.components.distributions import inverse_cdf

# Children per node: few levels, whose nodes are read in one piece.
_FAN_OUT = 32


class TensorSumTree(tf.Module):
  """Weights of items in variables of a program.

  Updates and samples cost O(log(number of items)).
  """

  def __init__(self, num_leaves: int):
    """Initializes all weights with 0."""
    super().__init__(name='sum_tree')
    sizes = [num_leaves]
    while sizes[-1] > 1:
      sizes.append(-(-sizes[-1] // _FAN_OUT))
    # Each level is padded to whole nodes; the last one is the total.
    self._levels = [
      tf.Variable(
        tf.zeros([-(-size // _FAN_OUT) * _FAN_OUT], tf.float64),
        trainable=False,
      )
      for size in sizes
    ]

  @property
  def leaves(self) -> tf.Variable:
    """The weights, float64, with trailing zeros."""
    return self._levels[0]

  def total(self) -> tf.Tensor:
    """Returns the sum of all weights, float64."""
    return gather(self._levels[-1], tf.constant([0]))[0]

  def get(self, indices: tf.Tensor) -> tf.Tensor:
    """Returns the weights of items, in the shape of `indices`."""
    return gather(self.leaves, indices)

  def set(self, indices: tf.Tensor, weights: tf.Tensor) -> None:
    """Sets float64 weights ≥ 0; repeated indices must have equal ones."""
    scatter(self.leaves, indices, weights)
    self._add_up(indices // _FAN_OUT)

  def set_runs(
    self, starts: tf.Tensor, length: int, weights: tf.Tensor
  ) -> None:
    """Sets weights `[K, L]` of runs of L items, as `set` does, but faster."""
    indices = starts[:, None] + tf.range(length)  # [K, L]
    scatter(self.leaves, tf.reshape(indices, [-1]), tf.reshape(weights, [-1]))
    # The nodes that a run can touch, perhaps with the last one repeated.
    count = (length + _FAN_OUT - 2) // _FAN_OUT + 1
    nodes = starts[:, None] // _FAN_OUT + tf.range(count)
    nodes = tf.minimum(nodes, (starts[:, None] + length - 1) // _FAN_OUT)
    self._add_up(tf.reshape(nodes, [-1]))

  def draw(self, uniforms: tf.Tensor) -> tf.Tensor:
    """Samples items in proportion to their weights, not all of them 0.

    Maps float64 numbers in [0, 1) to indices, int32, `[B]` each.
    """
    left = uniforms * self.total()
    node = tf.zeros(uniforms.shape, tf.int32)
    for level in reversed(self._levels[:-1]):
      node, left = _descend(level, node, left)
    return node

  def _add_up(self, nodes: tf.Tensor) -> None:
    """Updates the sums of first-level nodes, and of all nodes above."""
    for below, level in zip(self._levels, self._levels[1:]):
      children = nodes[:, None] * _FAN_OUT + tf.range(_FAN_OUT)
      scatter(level, nodes, tf.reduce_sum(gather(below, children), axis=1))
      nodes = nodes // _FAN_OUT


def _descend(
  level: tf.Variable, node: tf.Tensor, left: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Descends to the children that contain the remaining weight."""
  children = node[:, None] * _FAN_OUT + tf.range(_FAN_OUT)
  weights = gather(level, children)  # [B, fan-out]
  sums = tf.cumsum(weights, axis=1)
  place = inverse_cdf.find(sums, weights, left)
  before = tf.gather(
    tf.concat([tf.zeros_like(sums[:, :1]), sums], axis=1), place, batch_dims=1
  )
  # XLA may subtract before rounding, which can give less than 0.
  return node * _FAN_OUT + place, tf.maximum(left - before, 0.0)


# XLA supports these operations, unlike those of `tf.Variable`.


def gather(variable: tf.Variable, indices: tf.Tensor) -> tf.Tensor:
  """Reads rows, without copying the others."""
  return tf.raw_ops.ResourceGather(
    resource=variable.handle, indices=indices, dtype=variable.dtype
  )


def scatter(variable: tf.Variable, indices: tf.Tensor, rows: tf.Tensor) -> None:
  """Writes rows, int32 `[K]` and `[K, ...]`."""
  tf.raw_ops.ResourceScatterUpdate(
    resource=variable.handle, indices=indices, updates=rows
  )
