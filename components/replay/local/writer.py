"""Writer of items to a table in this process."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from repertory.components.replay import tables, waits, writers
from repertory.components.replay.local import columns, pending
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
    super().__init__(table.description, place or waits.WaitPolicy(), **settings)
    self._table = table
    self._turn = turn
    self._queue: pending.WriterQueue | None = None
    self._packing = table.description.packing

  @property
  def shared(self) -> Sequence[int]:
    return self._packing.whole

  def open(self, num_alive: int) -> None:
    del num_alive  # References keep their arrays alive.
    self._queue = self._table.open_queue(self._turn)

  def keep(self, leaves: Sequence) -> list:
    return [None if leaf is None else np.array(leaf) for leaf in leaves]

  def put(
    self, leaves: Sequence, references: Sequence[Sequence] | None = None
  ) -> None:
    if self._queue is None:
      raise RuntimeError('The writer must be open for put, but is closed.')
    packing = self._packing
    for i in packing.packed:
      packing.check(i, leaves[i])
    small = [leaves[i] for i in packing.packed]
    if references is None:
      large = [
        self._collect(i, [np.array(each) for each in leaves[i]])
        for i in packing.whole
      ]
      count = len(small[0] if small else large[0])
    else:
      count = len(references)
      large = [
        self._collect(i, [each[k] for each in references])
        for k, i in enumerate(packing.whole)
      ]
    if not count:
      return
    priorities = np.array([self._next_priority() for _ in range(count)])
    self.num_items += count
    block = columns.Block(small, large, priorities)
    self._num_pending = self._table.put(self._queue, block)

  def is_ahead(self) -> bool:
    if self._queue is not None:
      self._num_pending = self._queue.num_pending
    return super().is_ahead()

  def _collect(self, index: int, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Returns a large leaf of K items as K objects."""
    collected = np.empty([len(arrays)], object)
    for k, array in enumerate(arrays):
      self._packing.check(index, array[np.newaxis])
      collected[k] = array
    return collected

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

  def _explain_wait(self) -> str:
    return self._table.explain_wait(self._queue) if self._queue else ''
