"""Mixing of learners' variables: communication graphs, weights, vectors."""

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


def in_neighbors(graph: str, size: int, index: int) -> list[int]:
  """Returns the in-neighbors of a learner, in order.

  Args:
    graph: One of `choices.GRAPHS`. In a 'ring' each learner receives from its
      predecessor. In an 'exponential' graph it receives from those 1, 2, 4, …
      positions before it (stochastic gradient push,
      https://arxiv.org/abs/1811.10792). In a 'complete' one it receives from
      all others.
    size: Number of learners.
    index: Index of the learner, from 0.
  """
  return [(index - step) % size for step in _steps_back(graph, size)]


def out_neighbors(graph: str, size: int, index: int) -> list[int]:
  """Returns the out-neighbors of a learner, see `in_neighbors`."""
  return [(index + step) % size for step in _steps_back(graph, size)]


def neighbor_weight(graph: str, size: int, share: float | None) -> float:
  """Returns the mixing weight of each in-neighbor.

  Args:
    share: Total weight of all in-neighbors; None for equal weights with the
      learner itself, 1 / (1 + D) for D neighbors, as in GALA, algorithm 1.
  """
  degree = len(_steps_back(graph, size))
  if not degree:
    return 0.0
  return 1 / (1 + degree) if share is None else share / degree


def _steps_back(graph: str, size: int) -> list[int]:
  """Returns the offsets of the in-neighbors before a learner."""
  if graph == 'ring':
    return [1] if size > 1 else []
  if graph == 'exponential':
    return [1 << power for power in range((size - 1).bit_length())]
  return list(range(1, size))
