"""Comparisons that say which leaf differs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from repertory.components import types, xla_checks


def rows(nest: types.Nest, numbers: Sequence[int]) -> types.Nest:
  """Returns some rows of each leaf."""
  return tree.map_structure(lambda leaf: tf.gather(leaf, numbers), nest)


def assert_same(found: types.Nest, expected: types.Nest, message: str) -> None:
  """Compares bit by bit; an error begins with the message."""
  _compare(found, expected, message, np.testing.assert_array_equal)


def assert_close(found: types.Nest, expected: types.Nest, message: str) -> None:
  """Does the same, but allows for sums that are taken in another order."""
  _compare(
    found,
    expected,
    message,
    lambda x, y, m: np.testing.assert_allclose(x, y, 1e-3, 1e-5, err_msg=m),
  )


def assert_compiles_alike(function: Any) -> None:
  """Fails if XLA may compile a concrete function in more ways than one."""
  found = xla_checks.find_open_slices(function)
  assert not found, (
    'XLA may compile slices, as of x[i], in several ways if their place is '
    f'known only when they run: take tf.gather(x, i). Found {found}.'
  )


def _compare(found, expected, message, compare) -> None:
  tree.assert_same_structure(found, expected)
  flat = zip(tree.flatten_with_path(found), tree.flatten(expected))
  for (path, x), y in flat:
    if x is not None:
      place = '/'.join(map(str, path))
      compare(np.asarray(x), np.asarray(y), f'{message} ({place})')
