"""Conversion between batch-major and time-major nests."""

import tensorflow as tf
import tree

from repertory.components import types


def time_major(sequences: types.Sequence) -> types.Sequence:
  """Transposes sequences `[B, T, ...]` from replay to `[T, B, ...]`.

  The state and the version, which have no time axis, stay as they are.
  """
  swapped = swap_leading_axes(sequences._replace(state=(), version=()))
  return swapped._replace(state=sequences.state, version=sequences.version)


def swap_leading_axes(nest: types.Nest) -> types.Nest:
  """Transposes each leaf `[B, T, ...]` to `[T, B, ...]`, and vice versa."""

  def swap(leaf):
    axes = [1, 0, *range(2, len(leaf.shape))]
    return tf.transpose(leaf, axes)

  return tree.map_structure(swap, nest)
