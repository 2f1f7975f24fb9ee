"""Ring buffers of the latest steps of an environment batch."""

import numpy as np

# Up to this size, copying whole steps is faster than copying cells.
_MAX_CELL_BYTES = 64


class Rings:
  """Ring buffers with the latest steps of all slots, an array per leaf."""

  def __init__(self, size: int):
    """Takes the number of steps; the first `write` defines the leaves."""
    self._size = size
    self._arrays: list[np.ndarray] | None = None  # Each [size, B, ...]

  def write(self, time: int, leaves: list) -> None:
    """Writes leaves `[B, ...]` over the oldest ones."""
    if self._arrays is None:
      leaves = [np.asarray(leaf) for leaf in leaves]
      self._arrays = [
        np.zeros([self._size, *leaf.shape], leaf.dtype) for leaf in leaves
      ]
    place = time % self._size
    for array, leaf in zip(self._arrays, leaves, strict=True):
      array[place] = leaf

  def clear(self, time: int, slots: np.ndarray) -> None:
    """Writes zeros into the given slots, bool `[B]`."""
    for array in self._arrays or []:
      array[time % self._size, slots] = 0

  def cut(
    self,
    slots: np.ndarray,
    starts: np.ndarray,
    length: int,
    begins: np.ndarray,
    end: int,
  ) -> list[np.ndarray]:
    """Extracts segments `[K, length, ...]` of all leaves.

    Args:
      slots: Slot of each segment, `[K]`.
      starts: First time of each segment, `[K]`.
      length: Number of steps per segment.
      begins: Time before which each segment is zero, `[K]`.
      end: Time from which segments are zero.
    """
    times = starts[:, None] + np.arange(length)  # [K, length]
    outside = (times < begins[:, None]) | (times >= end)
    is_padded = outside.any()
    places = times % self._size
    are_aligned = (starts == starts[0]).all()
    cuts = []
    for array in self._arrays or []:
      if (
        are_aligned
        and len(slots) == array.shape[1]
        and array[0, 0].nbytes <= _MAX_CELL_BYTES
      ):
        cut = array[places[0]].swapaxes(0, 1)[slots]
      else:
        cut = array[places, slots[:, None]]
      if is_padded:
        cut[outside] = 0
      cuts.append(cut)
    return cuts

  def at(self, slots: np.ndarray, times: np.ndarray | int) -> list[np.ndarray]:
    """Returns the leaves of slots at one time each, `[K, ...]`."""
    return [array[times % self._size, slots] for array in self._arrays or []]
