"""From replay's axes to those of losses."""

import tensorflow as tf
import tree

from repertory.components import types


def time_major(sequences: types.Sequence) -> types.Sequence:
  """Turns sequences `[B, T, ...]`, as replay gives them, to `[T, B, ...]`.

  The state and the version, which have no time axis, stay as they are.
  """
  swapped = swap_leading_axes(sequences._replace(state=(), version=()))
  return swapped._replace(state=sequences.state, version=sequences.version)


def swap_leading_axes(nest: types.Nest) -> types.Nest:
  """Turns each leaf `[B, T, ...]` to `[T, B, ...]`, and the other way round."""

  def swap(leaf):
    axes = [1, 0, *range(2, len(leaf.shape))]
    return tf.transpose(leaf, axes)

  return tree.map_structure(swap, nest)
