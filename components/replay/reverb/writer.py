"""Writer of items to a replay server."""

from collections.abc import Mapping, Sequence

import numpy as np
from reverb import errors as reverb_errors

from repertory.components.replay import tables, writers
from repertory.components.replay.reverb import client


class ReverbWriter(writers.Writer):
  """Writes items to a replay server, packed by `table.packing`.

  All environment slots share one Reverb writer, so a chunk holds one step: with
  longer chunks, an item would include steps of other slots.
  """

  _place: client.Connection

  def open(self, num_alive: int) -> None:
    self._num_alive = num_alive
    self._columns: list = []
    self._writer = self._place.client.trajectory_writer(num_alive)

  def keep(self, leaves: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
    columns = [leaves.get(i) for i in self.shared]
    kept = {i: np.empty([len(leaf)], object) for i, leaf in leaves.items()}
    for slot in range(len(next(iter(leaves.values())))):
      row = [None if column is None else column[slot] for column in columns]
      references = self._append([None, *row])[1:]
      for i, reference in zip(self.shared, references):
        if i in kept:
          kept[i][slot] = reference
    return kept

  def put(self, leaves: Sequence[np.ndarray]) -> None:
    shared = [leaves[i] for i in self.shared]
    if not shared or shared[0].dtype != object:
      for columns in zip(*self._packing.bundle(leaves)):
        self._insert(self._append(columns))
      return
    unused = [None] * len(shared)
    for record, *references in zip(self._packing.pack(leaves), *shared):
      self._writer.append([record, *unused])
      self._insert([self._columns[0][-1], *references])

  def _append(self, step: Sequence[np.ndarray | None]) -> list:
    """Appends a value per column; returns references, None for None."""
    if not self._columns:
      for index in range(len(step)):
        self._writer.configure(
          (index,), num_keep_alive_refs=self._num_alive, max_chunk_length=1
        )
    self._writer.append(step)
    if not self._columns:
      self._columns = self._writer.history
    return [
      None if value is None else column[-1]
      for value, column in zip(step, self._columns)
    ]

  def _insert(self, item: Sequence) -> None:
    """Inserts an item or bundle."""
    priority = self._next_priority()
    self._writer.create_item(self.table.name, priority, item)
    self.num_items += self.table.bundle_size
    self._num_pending += 1

  def _try_to_drain(self, num_pending: int, seconds: float) -> bool:
    # Reverb interprets 0 ms as no timeout.
    milliseconds = max(1, int(seconds * 1000))
    try:
      self._writer.flush(num_pending, timeout_ms=milliseconds)
    except reverb_errors.DeadlineExceededError:
      return False
    return True

  def _close(self) -> None:
    self._writer.close()

  def _ask(self) -> tables.TableInfo:
    return self._place.look(self.table)
