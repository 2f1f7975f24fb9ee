"""Storage of the leaves of items in a table of this process."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from repertory.components import types
from repertory.components.config.settings import SettingError, text_of
from repertory.components.replay import tables
from repertory.components.runtime import nests

# Alignment of arrays that TensorFlow uses without a copy.
_ALIGNMENT = 64


@dataclasses.dataclass
class Block:
  """Pending items of one writer.

  Attributes:
    small: Small leaves, `[K, ...]` each.
    large: Large leaves, an array of K objects each: arrays that never change.
    priorities: float64 `[K]`.
    begin: Index of the first item that is not in the table yet.
  """

  small: list[np.ndarray]
  large: list[np.ndarray]
  priorities: np.ndarray
  begin: int = 0

  @property
  def num_left(self) -> int:
    """Number of items that are not in the table yet."""
    return len(self.priorities) - self.begin

  def own(self) -> None:
    """Copies the arrays that the caller may change."""
    self.small = [np.array(leaf[self.begin :]) for leaf in self.small]
    self.large = [leaf[self.begin :] for leaf in self.large]
    self.priorities = self.priorities[self.begin :]
    self.begin = 0


class Columns:
  """Columns with the leaves of all items: one column per leaf.

  Small leaves share one array of the table's full size; the system allocates
  memory only for rows that were written. Large leaves, such as images, are
  objects: several items may share one, which is freed with the last of them.
  """

  def __init__(self, table: tables.TableSpec):
    layout = table.packing
    for shape, dtype in zip(layout.shapes, layout.dtypes):
      if None in shape or dtype.hasobject:
        raise ValueError(
          f"signature of table '{table.name}' must have numeric leaves of "
          f'known shape, got {dtype} of shape {shape}.'
        )
    self._packing = layout
    size = table.max_size
    try:
      self._small = [
        np.empty([size, *layout.shapes[i]], layout.dtypes[i])
        for i in layout.packed
      ]
      self._large = [np.empty([size], object) for _ in layout.whole]
    except (MemoryError, ValueError) as error:
      raise SettingError(
        'max_size', f"of table '{table.name}' is too large: {text_of(error)}."
      ) from error
    self._unflatten = nests.Unflattener(table.signature)

  def write(self, place: int, block: Block, begin: int, count: int) -> None:
    """Writes `count` items of a block, starting at item `begin`."""
    place_end, end = place + count, begin + count
    columns, leaves = self._small + self._large, block.small + block.large
    for column, leaf in zip(columns, leaves):
      column[place:place_end] = leaf[begin:end]

  def take(self, places: np.ndarray) -> list[np.ndarray]:
    """Returns small leaves `[B, ...]`, then large ones as objects `[B]`.

    The results do not change when rows are overwritten.
    """
    return [column.take(places, axis=0) for column in self._small + self._large]

  def forget(self, places: np.ndarray) -> None:
    """Drops the large leaves of removed items."""
    for column in self._large:
      column[places] = None

  def assemble(self, taken: Sequence[np.ndarray]) -> types.Nest:
    """Converts the output of `take` to items, `[B, ...]` in a nest."""
    layout = self._packing
    leaves: list = [None] * len(layout.shapes)
    for i, leaf in zip((*layout.packed, *layout.whole), taken):
      leaves[i] = leaf
    for i in layout.whole:
      leaves[i] = _stack(leaves[i], layout.shapes[i], layout.dtypes[i])
    return self._unflatten(leaves)


def _stack(
  arrays: Sequence[np.ndarray], shape: Sequence[int], dtype: np.dtype
) -> np.ndarray:
  """Copies arrays into one with the alignment that TensorFlow needs."""
  num_bytes = len(arrays) * dtype.itemsize * int(np.prod(shape, dtype=np.int64))
  room = np.empty([num_bytes + _ALIGNMENT], np.uint8)
  begin = -room.ctypes.data % _ALIGNMENT
  stacked = room[begin : begin + num_bytes].view(dtype)
  stacked = stacked.reshape([len(arrays), *shape])
  for row, array in zip(stacked, arrays):
    row[...] = array
  return stacked
