"""Batches from a local replay table."""

import time

from repertory.components import types
from repertory.components.replay import batches, waits
from repertory.components.replay.local import table as table_lib
from repertory.components.runtime import signals

# Interval of checks for the end of a wait.
_SLICE_SECONDS = 0.2


class LocalBatches(batches.Batches):
  """Iterator over batches of a table in this process.

  A batch is sampled on request, in the calling thread: it is as fresh as
  possible, and reproducible in a single thread. Leaves are arrays.

  If a single thread inserts and samples, requesting a batch that is not due
  raises a `DeadlockError` at once; see `replay.ReplayRatio`.
  """

  def __init__(
    self,
    table: table_lib.Table,
    batch_size: int,
    place: waits.WaitPolicy | None = None,
  ):
    """Initializes the iterator over batches `[B]`, without sampling."""
    self._table = table
    self._batch_size = batch_size
    self._place = place or waits.WaitPolicy()
    self._timeout_start = 0.0
    self._is_closed = False

  @property
  def element_spec(self) -> types.Sample:
    signature = self._table.description.signature
    return batches.sample_spec(signature, self._batch_size)

  def __next__(self) -> types.Sample:
    if self._is_closed:
      raise signals.Stopped
    sample = self._table.sample(self._batch_size, 0)
    return self._wait() if sample is None else sample

  def reset_timeout(self) -> None:
    self._timeout_start = time.monotonic()

  def close(self) -> None:
    self._is_closed = True

  def _wait(self) -> types.Sample:
    place, since = self._place, time.monotonic()
    monitor = waits.WaitMonitor(place, self._table.status, self._describe_wait)
    while True:
      if self._is_closed or place.stop.is_set():
        raise signals.Stopped
      sample = self._table.sample(self._batch_size, _SLICE_SECONDS)
      if sample is not None:
        return sample
      waited = time.monotonic() - max(since, self._timeout_start)
      if waited > place.timeout_seconds:
        raise TimeoutError(
          f'Waited {place.timeout_seconds:g} seconds for '
          f'{self._describe_wait(self._table.status())}'
        )
      batch_timeout = self.batch_timeout_seconds
      if batch_timeout is not None and waited > batch_timeout:
        raise batches.BatchTimeout
      monitor.keep(waited)

  def _describe_wait(self, seen: waits.Seen) -> str:
    return batches.describe_wait(self._table.description, self._place, seen)
