"""Validation and conversion of observations for trained policies."""

from collections import abc
from typing import Any

import numpy as np
import tree

from repertory.components import types
from repertory.environments.batches import batch_columns, layout
from repertory.environments.values import casting


class Observations:
  """Flattens single observations or batches, with checks."""

  def __init__(self, nested_spec: types.Nest):
    """Prepares the conversion.

    Args:
      nested_spec: Nest of array specs, without a batch axis.
    """
    self._layout = layout.NestLayout(nested_spec, 'observation')
    specs, paths = self._layout.specs, self._layout.paths
    indices = self._layout.unflatten(range(len(specs)))
    # In the order of `tree`: index, path, shape and dtype.
    self._leaves = [
      (i, paths[i], specs[i].shape, np.dtype(specs[i].dtype))
      for i in tree.flatten(indices)
    ]
    self._ranges = [
      batch_columns.find_range(paths[i], specs[i], 'row')
      for i in tree.flatten(indices)
    ]

  def flatten(self, observation: types.Nest) -> tuple[list[np.ndarray], bool]:
    """Returns the leaves in the order of `tree`.

    Numbers may have a wider type than the spec if they fit, such as float64 for
    float32.

    Args:
      observation: Observation as in the spec, or with a leading batch axis.

    Returns:
      The leaves `[B, ...]`, and whether there was a batch axis; if not, B is 1.
    """
    leaves = self._layout.flatten(observation)
    _, _, shape, _ = self._leaves[0]
    first = leaves[self._leaves[0][0]]
    is_batch = np.ndim(first) == len(shape) + 1 and not _is_nest(first)
    rows = np.shape(first)[:1] if is_batch else ()
    if rows == (0,):
      raise ValueError('observation: expected at least one row, found none.')
    arrays = [
      _to_array(leaves[i], path, rows, shape, dtype)
      for i, path, shape, dtype in self._leaves
    ]
    arrays = [a if is_batch else a[None] for a in arrays]
    for bounds, array in zip(self._ranges, arrays):
      if bounds is not None:
        bounds.check(array)
    return arrays, is_batch


def _to_array(
  leaf: Any,
  path: str,
  rows: tuple[int, ...],
  shape: tuple[int, ...],
  dtype: np.dtype,
) -> np.ndarray:
  whole = (*rows, *shape)
  if type(leaf) is np.ndarray and leaf.dtype == dtype and leaf.shape == whole:
    return leaf
  try:
    return casting.cast(leaf, whole, dtype)
  except ValueError as error:
    batch = ', '.join(map(str, ['B', *shape]))
    raise ValueError(
      f'{path}: {error}. A single observation has shape {shape}; in a batch, '
      f'all leaves have a batch axis, here ({batch}).'
    ) from error


def _is_nest(leaf: Any) -> bool:
  return isinstance(leaf, (list, tuple, abc.Mapping))
