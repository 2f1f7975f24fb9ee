"""Mixing of learners' variables, and a bound on their distance."""

from collections.abc import Sequence

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


class Trail:
  """A learner's part of the bound on the distance to the mean of all.

  Mixing with matrix P maps X, a row per learner, to P (X + G), where G holds
  the changes by learning since the last mixing. So the distance of X from its
  mean is at most Σ β^(k − s) ‖G(s)‖ over all mixings s up to k, with the
  contraction β of the matrix (GALA, proposition 1, whose α L is the largest
  ‖G‖). As ‖G‖ is at most the sum of its rows' norms, each learner can compute
  its part from its own row; the bound is the sum of the parts.
  """

  def __init__(self, contraction: float, length: float = 0.0):
    """Starts with equal learners.

    Args:
      contraction: See `graphs.contraction`.
      length: Length at which to resume.
    """
    self._contraction = contraction
    self._length = length

  @property
  def length(self) -> float:
    """This learner's part of the bound, as of its last mixing."""
    return self._length

  def learn(self, displacement: float) -> None:
    """Adds the distance learned since the last mixing."""
    self._length += displacement

  def contract(self) -> None:
    """Records a mixing with all neighbors."""
    self._length *= self._contraction
