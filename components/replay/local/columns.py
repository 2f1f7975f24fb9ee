"""Where a table of this process keeps the leaves of its items."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import tree

from repertory.components import nests, types
from repertory.components.replay import tables
from repertory.components.settings import SettingError, text_of

# What is kept of an item besides its leaves, measured: its priority, and the
# weight of one that is drawn by it with its sums. And of a large leaf: that it
# is an array, and where.
_ITEM_BYTES, _LARGE_BYTES = 32, 144
_PRIORITY_BYTES = 8

# How TensorFlow wants arrays to begin; others it copies.
_ALIGNMENT = 64


@dataclasses.dataclass
class Block:
  """Items on their way to the table.

  Attributes:
    small: Small leaves, `[K, ...]` each.
    large: Large leaves, an array of K objects each: arrays that nobody changes.
    priorities: float64 `[K]`.
    begin: The items before this one are in the table already.
  """

  small: list[np.ndarray]
  large: list[np.ndarray]
  priorities: np.ndarray
  begin: int = 0

  @property
  def num_left(self) -> int:
    """Items that are not in the table."""
    return len(self.priorities) - self.begin

  def own(self) -> None:
    """Copies what whoever made the items may change."""
    self.small = [np.array(leaf[self.begin :]) for leaf in self.small]
    self.large = [leaf[self.begin :] for leaf in self.large]
    self.priorities = self.priorities[self.begin :]
    self.begin = 0


class Columns:
  """The leaves of items, by place: a column for each leaf.

  Small leaves lie in one array for all places. It has its full size from the
  beginning, but the system gives memory only to what has been written. Large
  leaves, such as images, are objects: one that several items share is there
  once, and is gone with the last of them.
  """

  def __init__(self, table: tables.Table):
    """Makes room.

    Args:
      table: How many items, and of what.

    Raises:
      SettingError: If there can never be so much memory.
      ValueError: If the shape of a leaf is not known.
    """
    packing = table.packing
    for shape, dtype in zip(packing.shapes, packing.dtypes):
      if None in shape or dtype.hasobject:
        raise ValueError(
          f"signature of table '{table.name}' must have numbers of a known "
          f'shape; got {dtype} of shape {shape}.'
        )
    self._packing = packing
    size = table.max_size
    try:
      self._small = [
        np.empty([size, *packing.shapes[i]], packing.dtypes[i])
        for i in packing.packed
      ]
      self._large = [np.empty([size], object) for _ in packing.whole]
    except (MemoryError, ValueError) as error:
      raise SettingError(
        'max_size', f"of table '{table.name}' is too large: {text_of(error)}."
      ) from error
    self._unflatten = nests.Unflattener(table.signature)

  def write(self, place: int, block: Block, begin: int, count: int) -> None:
    """Writes items of a block, from one on, to neighboring places."""
    place_end, end = place + count, begin + count
    for column, leaf in zip(self._small, block.small):
      column[place:place_end] = leaf[begin:end]
    for column, leaf in zip(self._large, block.large):
      column[place:place_end] = leaf[begin:end]

  def take(self, places: np.ndarray) -> list[np.ndarray]:
    """Returns small leaves `[B, ...]`, then large ones as objects `[B]`.

    What is returned does not change when places are overwritten.
    """
    return [column.take(places, axis=0) for column in self._small + self._large]

  def forget(self, places: np.ndarray) -> None:
    """Lets go of the large leaves of items that have left."""
    for column in self._large:
      column[places] = None

  def make_block(
    self, taken: Sequence[np.ndarray], priorities: np.ndarray
  ) -> Block:
    """Returns items that were taken as items on their way."""
    num_small = len(self._small)
    return Block([*taken[:num_small]], [*taken[num_small:]], priorities)

  def assemble(self, taken: Sequence[np.ndarray]) -> types.Nest:
    """Maps what was taken to items, `[B, ...]` in the table's structure."""
    packing = self._packing
    leaves: list = [None] * len(packing.shapes)
    for i, leaf in zip((*packing.packed, *packing.whole), taken):
      leaves[i] = leaf
    for i in packing.whole:
      leaves[i] = _stack(leaves[i], packing.shapes[i], packing.dtypes[i])
    return self._unflatten(leaves)


def item_bytes(table: tables.Table) -> int:
  """Returns what an item takes of this process's memory, at most.

  Nothing is compressed. Of a transition, large leaves of the next observation
  are not counted: they are those of a later one, but at an episode's end.
  """
  size = _ITEM_BYTES + _num_bytes(table, range(len(table.packing.shapes)))
  size += _LARGE_BYTES * len(table.packing.whole)
  if isinstance(table.signature, types.Transition):
    before = tree.flatten(table.signature[:-2])
    after = len(tree.flatten(table.signature.next_observation))
    shared = range(len(before), len(before) + after)
    size -= _num_bytes(table, [i for i in table.packing.whole if i in shared])
  return size


def copied_bytes(table: tables.Table) -> int:
  """Returns what of an item is there twice while a snapshot is written.

  That is its small leaves and its priority; large leaves are shared.
  """
  return _num_bytes(table, table.packing.packed) + _PRIORITY_BYTES


def _num_bytes(table: tables.Table, leaves: Sequence[int]) -> int:
  packing = table.packing
  return sum(
    packing.dtypes[i].itemsize * int(np.prod(packing.shapes[i], dtype=np.int64))
    for i in leaves
  )


def _stack(
  arrays: Sequence[np.ndarray], shape: Sequence[int], dtype: np.dtype
) -> np.ndarray:
  """Copies arrays into one that TensorFlow takes as it is."""
  num_bytes = len(arrays) * dtype.itemsize * int(np.prod(shape, dtype=np.int64))
  room = np.empty([num_bytes + _ALIGNMENT], np.uint8)
  begin = -room.ctypes.data % _ALIGNMENT
  stacked = room[begin : begin + num_bytes].view(dtype)
  stacked = stacked.reshape([len(arrays), *shape])
  for row, array in zip(stacked, arrays):
    row[...] = array
  return stacked
