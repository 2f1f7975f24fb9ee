"""Conversion of logged values to plain Python values, for all loggers."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def to_plain(value: Any) -> Any:
  """Converts a logged value to numbers, text, None, lists and dictionaries.

  Args:
    value: Python, NumPy or TensorFlow scalars become bool, int, float or text;
      arrays and sequences become lists, mappings dictionaries with text keys.
      Anything else becomes its `str`, so that no logger fails.

  Returns:
    A value without NumPy or TensorFlow types. NaN and infinity are kept.
  """
  if isinstance(value, np.floating):  # np.float64 is a float as well.
    return float(value)
  if value is None or isinstance(value, (bool, int, float, str)):
    return value
  if hasattr(value, 'numpy'):  # Tensors, some of which NumPy cannot convert.
    value = value.numpy()
  if isinstance(value, bytes):
    return value.decode('utf-8', errors='replace')
  if hasattr(value, '__array__'):
    array = np.asarray(value)
    if array.dtype.kind == 'V' and not array.dtype.names:
      # NumPy treats bfloat16 and similar types as void.
      array = array.astype(np.float32)
    return to_plain(array.tolist())
  if isinstance(value, Mapping):
    return {str(key): to_plain(item) for key, item in value.items()}
  if isinstance(value, (list, tuple, set, frozenset)):
    return [to_plain(item) for item in value]
  return str(value)


def is_number(value: Any) -> bool:
  """Returns whether a plain value is a number; bools are."""
  return isinstance(value, (bool, int, float))
