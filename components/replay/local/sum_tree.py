"""Sum tree for prioritized sampling."""

import numpy as np

# Width of the smallest tree.
_MIN_WIDTH = 8


class SumTree:
  """Stores weights, and samples indices in proportion to them.

  It has three levels: weights are summed up in blocks, blocks in groups, and
  groups at the top. A NumPy call costs more than adding up a hundred numbers,
  so few wide levels are faster than many narrow ones. Each row holds cumulative
  sums, with a leading zero. Sums are always recomputed from the level below: no
  error accumulates, and equal weights give bitwise equal sums, whatever their
  history.
  """

  def __init__(self, size: int):
    """Initializes `size` zeros; memory is allocated on write."""
    width = _MIN_WIDTH
    while width**3 < size:
      width *= 2
    num_groups = -(-size // width**2)
    self._width = width
    self._weights = np.zeros([num_groups * width**2])
    self._blocks = np.zeros([num_groups * width, width + 1])
    self._groups = np.zeros([num_groups, width + 1])
    self._top = np.zeros([num_groups + 1])
    # Flags of rows whose sums are out of date.
    self._is_block_stale = np.zeros([num_groups * width], bool)
    self._is_group_stale = np.zeros([num_groups], bool)
    self._is_stale = False

  @property
  def total(self) -> float:
    """The sum of all weights."""
    self._renew()
    return float(self._top[-1])

  def set(self, places: np.ndarray, weights: np.ndarray) -> None:
    """Sets weights by index; of repeated indices, the last one counts."""
    self._weights[places] = weights
    self._is_block_stale[places // self._width] = True
    self._is_stale = True

  def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Samples indices: the first with cumulative sum greater than u · total.

    Args:
      uniforms: u in [0, 1), `[B]`; the total must be positive.

    Returns:
      Indices, int64 `[B]`, and their sampling probabilities, float64 `[B]`.
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
    """Recomputes outdated sums."""
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
  """Clips values, which rounding may have raised, below positive bounds."""
  return np.minimum(values, np.nextafter(bounds, 0))
