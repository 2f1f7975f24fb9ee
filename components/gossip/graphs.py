"""Communication graphs of learners, and their mixing rates."""

import numpy as np

from repertory.components.config import choices


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

  Raises:
    ValueError: If there is no such graph.
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


def mixing_matrix(
  graph: str, size: int, share: float | None = None
) -> np.ndarray:
  """Returns the mixing matrix of all learners, `[N, N]`.

  Rows and columns sum to 1: each row is the previous one, shifted by one.

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
  """Returns the contraction factor β of the distance from the mean.

  An upper bound, in the norm over all variables of all learners: β of GALA,
  proposition 1. The matrix is circulant, so β is the largest absolute
  eigenvalue except the 1 of the mean.
  """
  first_row = mixing_matrix(graph, size, share)[0]
  return float(np.max(np.abs(np.fft.fft(first_row))[1:], initial=0.0))


def _steps_back(graph: str, size: int) -> list[int]:
  """Returns the offsets of the in-neighbors before a learner."""
  if graph not in choices.GRAPHS:
    raise ValueError(
      f'graph must be one of {", ".join(choices.GRAPHS)}, got {graph!r}.'
    )
  if graph == 'ring':
    return [1] if size > 1 else []
  if graph == 'exponential':
    return [1 << power for power in range((size - 1).bit_length())]
  return list(range(1, size))
