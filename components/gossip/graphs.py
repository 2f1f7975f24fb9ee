"""Communication graphs of learners, and their mixing weights."""

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
