"""Variables in one piece: a vector, as it is sent and mixed."""

import hashlib
import json
from collections.abc import Mapping

import numpy as np


class Layout:
  """Where each variable is in a vector.

  Only floating-point numbers are mixed. What is counted stays with whom it is.

  Attributes:
    size: Elements of a vector, P.
    dtype: The smallest that keeps all of them as they are.
    digest: The same wherever the same variables are.
  """

  def __init__(self, arrays: Mapping[str, np.ndarray]):
    """Places the arrays.

    Args:
      arrays: By name.

    Raises:
      ValueError: If none has numbers to mix.
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
    told = [
      [name, shape, dtype.str]
      for name, (_, shape, dtype) in self._places.items()
    ]
    self.digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()

  @property
  def num_bytes(self) -> int:
    """Bytes of a vector."""
    return self.size * self.dtype.itemsize

  def join(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns the vector of arrays, `[P]`."""
    vector = np.empty([self.size], self.dtype)
    for name, (place, _, _) in self._places.items():
      vector[place] = arrays[name].ravel()
    return vector

  def split(
    self, vector: np.ndarray, arrays: Mapping[str, np.ndarray]
  ) -> dict[str, np.ndarray]:
    """Returns arrays of a vector's numbers; those without a place stay.

    Args:
      vector: `[P]`.
      arrays: By name, as for `join`.
    """
    found = {
      name: vector[place].reshape(shape).astype(dtype)
      for name, (place, shape, dtype) in self._places.items()
    }
    return {**arrays, **found}
