"""Casts of values to a specified shape and dtype, without loss of meaning."""

from collections import abc
from typing import Any

import numpy as np

# The largest finite number of float32.
MAX_SINGLE = float(np.finfo(np.float32).max)


def fits_single(array: np.ndarray) -> bool:
  """Returns True if all float64 numbers fit into float32.

  A fast sufficient check: after False they may fit nevertheless, and `cast`
  decides.
  """
  flat = array.ravel()
  # The sum of squares bounds each square; comparisons with NaN are false.
  return float(flat.dot(flat)) <= MAX_SINGLE**2


def cast(
  value: Any, shape: tuple[int, ...], dtype: np.dtype, name: str = ''
) -> np.ndarray:
  """Returns `value` as an array of exactly this shape and dtype.

  Never broadcasts, and never changes the meaning of a number: float64 may
  become float32 (rounded) and int64 int32 (if it fits), but no float becomes an
  integer and nothing overflows. Lists, tuples and mappings are nests, not
  arrays.

  Raises:
    ValueError: If the shape differs or the numbers do not fit the dtype. The
      message starts with the name, or without one with 'expected'.
  """
  if isinstance(value, (list, tuple, abc.Mapping)):
    raise _mismatch(name, shape, dtype, f'the nest {shorten(value)}')
  array = np.asarray(value)
  if array.shape != shape:
    found = f'shape {array.shape} and dtype {array.dtype}'
    raise _mismatch(name, shape, dtype, found)
  if array.dtype == dtype:
    return array
  if array.dtype == np.float64 and dtype == np.float32 and fits_single(array):
    return array.astype(np.float32)
  integers = array.dtype.kind in 'iu' and dtype.kind in 'iu'
  if not (integers or np.can_cast(array.dtype, dtype, 'same_kind')):
    found = f'{shorten(value)} of dtype {array.dtype}'
    raise _mismatch(name, shape, dtype, found)
  with np.errstate(over='ignore'):
    result = array.astype(dtype)
  if integers:
    fits = result == array
  else:
    fits = np.isfinite(result) == np.isfinite(array)
  if not fits.all():
    raise _mismatch(name, shape, dtype, f'{shorten(value)}, which does not fit')
  return result


def _mismatch(
  name: str, shape: tuple[int, ...], dtype: np.dtype, found: str
) -> ValueError:
  expected = f'expected an array of shape {shape} and dtype {dtype}'
  return ValueError(f'{name and name + ": "}{expected}, found {found}')


def shorten(value: Any) -> str:
  """Returns `repr(value)`, truncated to keep messages readable."""
  text = repr(value)
  return text if len(text) <= 200 else text[:200] + '...'
