"""How a learner moves towards its neighbors, and how far they may be apart."""

from collections.abc import Sequence

import numpy as np


def mix(
  own: np.ndarray, heard: Sequence[np.ndarray], weight: float
) -> np.ndarray:
  """Returns own + Σ weight · (heard − own).

  With all D neighbors and weight 1 / (1 + D) that is the mean of all, GALA's
  algorithm 1, line 7. Written so, it changes nothing, to the last bit, where
  all are equal. And with fewer neighbors its weights still sum to 1.

  Args:
    own: `[P]`.
    heard: From each neighbor, `[P]`.
    weight: What each that was heard has in the mixture.
  """
  moved = own.copy()
  for one in heard:
    moved += own.dtype.type(weight) * (one - own)
  return moved


class Trail:
  """What a learner adds to the bound of the distance to the mean of all.

  Mixing with matrix P takes X, a row per learner, to P (X + G), where G is what
  all have learned since. So the distance of X from its mean is at most
  Σ β^(k − s) ‖G(s)‖ over all mixings s up to k, with the contraction β of the
  matrix (GALA, proposition 1, whose α L is the largest ‖G‖). As ‖G‖ is at most
  the sum of its rows' norms, each learner may keep its own part, with nothing
  but its own row; the bound is their sum.
  """

  def __init__(self, contraction: float, length: float = 0.0):
    """Begins where all learners are equal.

    Args:
      contraction: See `graphs.contraction`.
      length: What an earlier one had come to.
    """
    self._contraction = contraction
    self._length = length

  @property
  def length(self) -> float:
    """This learner's part of the bound, as of its last mixing."""
    return self._length

  def learn(self, displacement: float) -> None:
    """Notes how far learning has taken it since it mixed last."""
    self._length += displacement

  def contract(self) -> None:
    """Notes that it mixed with all of its neighbors."""
    self._length *= self._contraction
