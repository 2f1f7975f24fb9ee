"""Batches from a table of this process."""

import time

from repertory.components import signals, types
from repertory.components.datasets import batches
from repertory.components.replay import local

# How often a wait looks whether it should end.
_SLICE_SECONDS = 0.2


class LocalBatches(batches.Batches):
  """Iterates over batches of a table of this process.

  A batch is drawn when it is asked for, in the thread that asks: it is as new
  as it can be, and in one thread always the same. Leaves are arrays.
  """

  def __init__(self, table: local.Table, place: local.Place, batch_size: int):
    """Draws nothing yet.

    Args:
      table: What to read.
      place: Its time-out and stop signal end a wait.
      batch_size: B, at least 1.
    """
    if batch_size < 1:
      raise ValueError(f'batch_size must be at least 1, got {batch_size}.')
    self._table = table
    self._place = place
    self._batch_size = batch_size
    self._excused_at = 0.0
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

  def excuse(self) -> None:
    self._excused_at = time.monotonic()

  def close(self) -> None:
    self._is_closed = True

  def _wait(self) -> types.Sample:
    since = time.monotonic()
    while True:
      sample = self._table.sample(self._batch_size, _SLICE_SECONDS)
      if sample is not None:
        return sample
      if self._is_closed or self._place.stop.is_set():
        raise signals.Stopped
      waited = time.monotonic() - max(since, self._excused_at)
      if waited > self._place.timeout_seconds:
        description = self._table.description
        raise TimeoutError(batches.describe_wait(description, self._place))
      patience = self.patience_seconds
      if patience is not None and waited > patience:
        raise batches.Starved
