"""Who sends to whom, and how fast what they have in common spreads."""

from collections.abc import Callable, Mapping

import numpy as np

from repertory.components import choices


def in_neighbors(graph: str, size: int, index: int) -> list[int]:
  """Returns from whom one of several learners hears, in order.

  Args:
    graph: One of `choices.GRAPHS`. In a 'ring' each hears from the one before
      it. In an 'exponential' graph it hears from those 1, 2, 4, … places before
      it (stochastic gradient push, https://arxiv.org/abs/1811.10792). In a
      'complete' one it hears from all others.
    size: How many learners there are.
    index: Which of them it is, from 0.

  Raises:
    ValueError: If there is no such graph.
  """
  return [(index - step) % size for step in _steps_back(graph, size)]


def out_neighbors(graph: str, size: int, index: int) -> list[int]:
  """Returns who hears from one of several learners, see `in_neighbors`."""
  return [(index + step) % size for step in _steps_back(graph, size)]


def neighbor_weight(graph: str, size: int, share: float | None) -> float:
  """Returns by how much a learner moves towards each that it hears from.

  Args:
    share: What all that it hears from have together of what it is then; None
      for as much for each as for itself, 1 / (1 + D) for D neighbors, as in
      GALA, algorithm 1.
  """
  degree = len(_steps_back(graph, size))
  if not degree:
    return 0.0
  return 1 / (1 + degree) if share is None else share / degree


def mixing_matrix(
  graph: str, size: int, share: float | None = None
) -> np.ndarray:
  """Returns what each learner is of all when all have mixed, `[N, N]`.

  Rows and columns sum to 1: each row is the one before it, moved by one place.

  Args:
    share: See `neighbor_weight`.
  """
  weight = neighbor_weight(graph, size, share)
  matrix = np.zeros([size, size])
  for index in range(size):
    neighbors = in_neighbors(graph, size, index)
    matrix[index, neighbors] = weight
    matrix[index, index] = 1 - weight * len(neighbors)
  return matrix


def contraction(graph: str, size: int, share: float | None = None) -> float:
  """Returns by what mixing multiplies the distance of all from their mean.

  At the most, and in the norm over all variables of all learners: β of GALA,
  proposition 1. The matrix is a circulant one, so that is the largest of its
  eigenvalues but for the 1 of what all have in common.
  """
  first_row = mixing_matrix(graph, size, share)[0]
  return float(np.max(np.abs(np.fft.fft(first_row))[1:], initial=0.0))


def _steps_back(graph: str, size: int) -> list[int]:
  """Returns how many places before it those are that one hears from."""
  if graph not in _STEPS_BACK:
    raise ValueError(
      f'graph must be one of {", ".join(choices.GRAPHS)}, got {graph!r}.'
    )
  return _STEPS_BACK[graph](size)


def _ring(size: int) -> list[int]:
  return [1] if size > 1 else []


def _exponential(size: int) -> list[int]:
  return [1 << power for power in range((size - 1).bit_length())]


def _complete(size: int) -> list[int]:
  return list(range(1, size))


_STEPS_BACK: Mapping[str, Callable[[int], list[int]]] = dict(
  zip(choices.GRAPHS, (_ring, _exponential, _complete), strict=True)
)
