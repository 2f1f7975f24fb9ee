"""Items of a replay server, converted for a table of this process."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from repertory.components.replay import tables
from repertory.components.replay.local import table as table_lib


class ServerItems:
  """Collects items, and merges equal large arrays.

  A server does not report which arrays items share.
  """

  def __init__(self, table: tables.TableSpec):
    """Starts without items.

    Args:
      table: Description of their table.
    """
    self._table = table
    self._records: list[np.ndarray] = []  # Small leaves, packed.
    self._columns: list[list] = [[] for _ in table.packing.whole]
    self._arrays: dict[tuple, np.ndarray] = {}
    self._priorities: list[float] = []
    self._keys: list[int] = []

  def __len__(self) -> int:
    return len(self._priorities)

  def add(self, item: Any) -> None:
    """Adds the next item, in insertion order, as sampled from the server."""
    data = list(item.data)
    if self._table.packing.packed:
      self._records.append(np.array(data.pop(0), np.uint8))
    for column, array in zip(self._columns, data, strict=True):
      column.append(self._shared(array))
    self._keys.append(item.info.key)
    self._priorities.append(item.info.priority)

  def contents(
    self, inserts: int, samples: int, times_sampled: Mapping[int, int]
  ) -> table_lib.Contents:
    """Returns the items as contents of a table.

    Args:
      inserts: Items ever inserted.
      samples: Items ever sampled.
      times_sampled: Sample count by the server's keys, of items that have one.
    """
    packing = self._table.packing
    leaves = []
    if packing.packed:
      leaves += packing.unpack_records(np.array(self._records, np.uint8))
    for column in self._columns:
      leaf = np.empty([len(column)], object)
      for k, array in enumerate(column):
        leaf[k] = array
      leaves.append(leaf)
    return table_lib.Contents(
      leaves=leaves,
      priorities=np.array(self._priorities, np.float64),
      inserts=inserts,
      samples=samples,
      times_sampled=times_sampled.get(self._keys[0], 0) if self._keys else 0,
      random=None,
    )

  def _shared(self, array: np.ndarray) -> np.ndarray:
    digest = hashlib.blake2b(array.tobytes(), digest_size=16).digest()
    key = array.shape, array.dtype, digest
    if key not in self._arrays:
      self._arrays[key] = np.array(array)
    return self._arrays[key]
