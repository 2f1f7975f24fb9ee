"""Comparisons of nests that report the leaf that differs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from repertory.components import types
from repertory.components.runtime import compilation


def rows(nest: types.Nest, numbers: Sequence[int]) -> types.Nest:
  """Returns some rows of each leaf."""
  return tree.map_structure(lambda leaf: tf.gather(leaf, numbers), nest)


def assert_same(found: types.Nest, expected: types.Nest, message: str) -> None:
  """Compares bit by bit; an error begins with the message."""
  _compare(found, expected, message, np.testing.assert_array_equal)


def assert_close(found: types.Nest, expected: types.Nest, message: str) -> None:
  """Compares up to rounding, as of sums in another order."""
  _compare(
    found,
    expected,
    message,
    lambda x, y, m: np.testing.assert_allclose(x, y, 1e-3, 1e-5, err_msg=m),
  )


def assert_compiles_alike(function: Any) -> None:
  """Fails if XLA may compile a concrete function in different ways."""
  found = compilation.find_open_slices(function)
  assert not found, (
    'Slices such as x[i] must have indices known when they are traced, or XLA '
    f'may compile them in different ways; got {found}. Use tf.gather(x, i).'
  )


def _compare(found, expected, message, compare) -> None:
  tree.assert_same_structure(found, expected)
  flat = zip(tree.flatten_with_path(found), tree.flatten(expected))
  for (path, x), y in flat:
    if x is not None:
      place = '/'.join(map(str, path))
      compare(np.asarray(x), np.asarray(y), f'{message} ({place})')
