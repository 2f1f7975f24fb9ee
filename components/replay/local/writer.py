"""Writer of items to a table in this process."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components.replay import tables, waits, writers
from repertory.components.replay.local import stored_arrays
from repertory.components.replay.local import table as table_lib


class LocalWriter(writers.Writer):
  """Writes items to a table in this process.

  Items are inserted at once, unless the rate limiter or the round-robin order
  delays them. Arrays passed to `keep` live as long as an item that refers to
  them.
  """

  def __init__(
    self,
    table: table_lib.Table,
    place: waits.WaitPolicy | None = None,
    *,
    turn: int | None = None,
    **settings: Any,
  ):
    """As `writers.Writer`, with its position in a round-robin order, if any."""
    super().__init__(place or waits.WaitPolicy(), table.description, **settings)
    self._table = table
    self._turn = turn
    self._queue: table_lib.WriterQueue | None = None

  def open(self, num_alive: int) -> None:
    del num_alive  # References keep their arrays alive.
    self._splitters = self._make_splitters()
    self._queue = self._table.open_queue(self._turn)

  def keep(self, leaves: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
    splitters = self._splitters
    return {i: self._store(i, leaf, splitters) for i, leaf in leaves.items()}

  def put(self, leaves: Sequence[np.ndarray]) -> None:
    if self._queue is None:
      raise RuntimeError('The writer must be open for put, but is closed.')
    leaves = list(leaves)
    for i in self._packing.packed:
      self._packing.check(i, leaves[i])
    for i in self._packing.whole:
      if leaves[i].dtype != object:
        leaves[i] = self._store(i, leaves[i], self._make_splitters())
    count = len(leaves[0])
    if not count:
      return
    priorities = np.array([self._next_priority() for _ in range(count)])
    self.num_items += count
    items = table_lib.Items(leaves, priorities)
    self._num_pending = self._table.put(self._queue, items)

  def _make_splitters(self) -> dict[int, stored_arrays.Splitter]:
    return {
      i: stored_arrays.Splitter(number)
      for i, number in self._packing.stacks.items()
    }

  def _store(
    self,
    index: int,
    leaf: np.ndarray,
    splitters: dict[int, stored_arrays.Splitter],
  ) -> np.ndarray:
    """Copies a large leaf `[K, ...]` to objects `[K]`."""
    self._packing.check(index, leaf)
    if index in splitters:
      return stored_arrays.as_objects(splitters[index].split(leaf))
    return stored_arrays.as_objects(map(np.array, leaf))

  def is_ahead(self) -> bool:
    if self._queue is not None:
      self._num_pending = self._queue.num_pending
    return super().is_ahead()

  def _try_to_drain(self, num_pending: int, seconds: float) -> bool:
    if self._queue is None:
      return True
    if self._place.stop.is_set():
      seconds = 0.0
    return self._table.wait_for_queue(self._queue, num_pending, seconds)

  def _close(self) -> None:
    if self._queue is not None:
      self._table.close_queue(self._queue)
      self._queue = None

  def _ask(self) -> tables.TableInfo:
    return self._table.status()

  def _describe_wait(self) -> str:
    described = super()._describe_wait()
    if self._turn is None:
      return described
    return (
      f'{described}; writers insert in round-robin order, and this is number '
      f'{self._turn}'
    )
