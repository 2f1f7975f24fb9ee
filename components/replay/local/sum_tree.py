"""Weights, and draws in proportion to them."""

import numpy as np

# Of the smallest tree.
_MIN_WIDTH = 8


class SumTree:
  """Holds a weight for each place, and draws places by weight.

  It has three levels: weights are summed up in blocks, blocks in groups, and
  groups at the top. A call of NumPy costs more than to add up a row of a
  hundred numbers, so few wide levels are faster than many narrow ones. Every
  row holds the sums up to each of its members, with a zero before the first.
  They are always made anew of what is below: no error builds up, and equal
  weights give equal sums, to the last bit, whatever was there before.
  """

  def __init__(self, size: int):
    """Makes all weights zero. Memory is taken by the weights that are set.

    Args:
      size: Places.
    """
    width = _MIN_WIDTH
    while width**3 < size:
      width *= 2
    num_groups = -(-size // width**2)
    self._width = width
    self._weights = np.zeros([num_groups * width**2])
    self._blocks = np.zeros([num_groups * width, width + 1])
    self._groups = np.zeros([num_groups, width + 1])
    self._top = np.zeros([num_groups + 1])
    # Of which weights have changed since.
    self._is_block_stale = np.zeros([num_groups * width], bool)
    self._is_group_stale = np.zeros([num_groups], bool)
    self._is_stale = False

  @property
  def total(self) -> float:
    """The sum of all weights."""
    self._renew()
    return float(self._top[-1])

  def set(self, places: np.ndarray, weights: np.ndarray) -> None:
    """Sets the weights of some places; of one that comes twice, the last."""
    self._weights[places] = weights
    self._is_block_stale[places // self._width] = True
    self._is_stale = True

  def set_stretch(self, start: int, weights: np.ndarray) -> None:
    """Sets the weights of neighbors, from a place on."""
    end, width = start + len(weights), self._width
    self._weights[start:end] = weights
    self._is_block_stale[start // width : (end - 1) // width + 1] = True
    self._is_stale = True

  def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draws places: the first up to which the sum is more than u · total.

    Args:
      uniforms: u in [0, 1), `[B]`; the total must be positive.

    Returns:
      Places, int64 `[B]`, and the probabilities with which they are drawn,
      float64 `[B]`.
    """
    total = self.total
    rest = _below(uniforms * total, total)
    node = self._top[1:].searchsorted(rest, side='right')
    rest = rest - self._top[node]
    rows = np.arange(len(uniforms))
    for level in (self._groups, self._blocks):
      sums = level[node]  # [B, width + 1]
      rest = _below(rest, sums[:, -1])
      child = (sums[:, 1:] > rest[:, None]).argmax(axis=1)
      rest = rest - sums[rows, child]
      node = node * self._width + child
    return node, self._weights[node] / total

  def _renew(self) -> None:
    """Brings sums up to date."""
    if not self._is_stale:
      return
    width = self._width
    blocks = self._is_block_stale.nonzero()[0]
    weights = self._weights.reshape(-1, width)[blocks]
    self._blocks[blocks, 1:] = weights.cumsum(axis=1)
    self._is_block_stale[blocks] = False
    self._is_group_stale[blocks // width] = True
    groups = self._is_group_stale.nonzero()[0]
    sums = self._blocks[:, -1].reshape(-1, width)[groups]
    self._groups[groups, 1:] = sums.cumsum(axis=1)
    self._is_group_stale[groups] = False
    self._groups[:, -1].cumsum(out=self._top[1:])
    self._is_stale = False


def _below(values: np.ndarray, bounds) -> np.ndarray:
  """Keeps values below positive bounds, which rounding may have reached."""
  return np.minimum(values, np.nextafter(bounds, 0))
