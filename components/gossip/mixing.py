"""Mixing of learners' variables."""

import hashlib
import json
from collections.abc import Mapping, Sequence

import numpy as np


def mix(
  own: np.ndarray, received: Sequence[np.ndarray], weight: float
) -> np.ndarray:
  """Returns own + Σ weight · (received − own).

  With all D neighbors and weight 1 / (1 + D) that is the mean of all, GALA's
  algorithm 1, line 7. In this form it changes nothing, to the last bit, if all
  are equal. And with fewer neighbors the weights still sum to 1.

  Args:
    own: `[P]`.
    received: Variables of each neighbor, `[P]`.
    weight: Weight of each neighbor.
  """
  moved = own.copy()
  for one in received:
    moved += own.dtype.type(weight) * (one - own)
  return moved


class VectorLayout:
  """Slices of a vector, by variable.

  Only floating-point variables are mixed. Counts stay local.

  Attributes:
    size: Elements of a vector, P.
    dtype: The smallest that represents all of them exactly.
    digest: A hash of names, shapes and dtypes.
  """

  def __init__(self, arrays: Mapping[str, np.ndarray]):
    """Assigns a slice to each array.

    Args:
      arrays: The arrays, by name.

    Raises:
      ValueError: If none is floating-point.
    """
    self._places: dict[str, tuple[slice, tuple[int, ...], np.dtype]] = {}
    self.size = 0
    for name, array in arrays.items():
      if not np.issubdtype(array.dtype, np.floating):
        continue
      place = slice(self.size, self.size + array.size)
      self._places[name] = place, array.shape, array.dtype
      self.size = place.stop
    if not self.size:
      raise ValueError(
        f'arrays must have floating-point numbers to mix; got {list(arrays)}.'
      )
    dtypes = [dtype for _, _, dtype in self._places.values()]
    self.dtype = np.result_type(*dtypes)
    described = [
      [name, shape, dtype.str]
      for name, (_, shape, dtype) in self._places.items()
    ]
    self.digest = hashlib.sha256(json.dumps(described).encode()).hexdigest()

  @property
  def num_bytes(self) -> int:
    """Bytes of a vector."""
    return self.size * self.dtype.itemsize

  def join(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Concatenates arrays into a vector, `[P]`."""
    vector = np.empty([self.size], self.dtype)
    for name, (place, _, _) in self._places.items():
      vector[place] = arrays[name].ravel()
    return vector

  def split(
    self, vector: np.ndarray, arrays: Mapping[str, np.ndarray]
  ) -> dict[str, np.ndarray]:
    """Splits a vector into arrays; those that are not mixed stay.

    Args:
      vector: `[P]`.
      arrays: By name, as for `join`.
    """
    found = {
      name: vector[place].reshape(shape).astype(dtype)
      for name, (place, shape, dtype) in self._places.items()
    }
    return {**arrays, **found}
