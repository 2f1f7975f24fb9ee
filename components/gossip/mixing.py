"""Mixing of learners' variables: communication graphs, weights, vectors."""

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


def join(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
  """Concatenates all floating-point arrays into a vector, `[P]`.

  Others, such as counts, stay local. The dtype is the smallest that represents
  all of them exactly.

  Raises:
    ValueError: If none is floating-point.
  """
  found = [array.ravel() for array in arrays.values() if _is_mixed(array)]
  if not found:
    raise ValueError(
      f'arrays must have floating-point numbers to mix; got {list(arrays)}.'
    )
  return np.concatenate(found)


def split(
  vector: np.ndarray, arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
  """Returns arrays with the values of a vector; those not mixed stay.

  Args:
    vector: `[P]`.
    arrays: By name, as for `join`.
  """
  found, start = dict(arrays), 0
  for name, array in arrays.items():
    if _is_mixed(array):
      values = vector[start : start + array.size]
      found[name] = values.reshape(array.shape).astype(array.dtype)
      start += array.size
  return found


def _is_mixed(array: np.ndarray) -> bool:
  return np.issubdtype(array.dtype, np.floating)


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
