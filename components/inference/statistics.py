"""Throughput and latency metrics of an inference server."""

import collections
import threading
import time
from collections.abc import Sequence

import numpy as np

# Times stored for percentiles.
_NUM_TIMES = 2000


class Statistics:
  """Counts since the last report, and times of the last requests.

  Written in the server's thread, read in another.
  """

  def __init__(self):
    self._lock = threading.Lock()
    self._since = time.monotonic()
    self._blocked = 0.0
    self._counts: collections.Counter = collections.Counter()
    self._times = {
      name: collections.deque(maxlen=_NUM_TIMES)
      for name in ('wait', 'run', 'round_trip')
    }

  def note_batch(
    self,
    *,
    rows: int,
    bucket: int,
    waits: Sequence[float],
    run: float,
  ) -> None:
    """Records a batch of `rows`, padded to `bucket`, and times in seconds."""
    with self._lock:
      self._counts['batches'] += 1
      self._counts['requests'] += len(waits)
      self._counts['rows'] += rows
      self._counts['computed'] += bucket
      self._times['wait'].extend(waits)
      self._times['run'].append(run)

  def note_round_trip(self, seconds: float) -> None:
    """Records how long an actor waited for its last actions."""
    if seconds:
      with self._lock:
        self._times['round_trip'].append(seconds)

  def report(self, blocked_seconds: float) -> dict[str, float]:
    """Returns the metrics since the last report.

    Args:
      blocked_seconds: Total time spent in adders, most of it waiting for the
        rate limiter if that limits the actors.
    """
    with self._lock:
      now = time.monotonic()
      seconds, self._since = max(now - self._since, 1e-9), now
      counts, self._counts = self._counts, collections.Counter()
      times = {name: np.array(values) for name, values in self._times.items()}
      blocked = blocked_seconds - self._blocked
      self._blocked = blocked_seconds
    batches = max(counts['batches'], 1)
    row = {
      'requests_per_second': counts['requests'] / seconds,
      'rows_per_second': counts['rows'] / seconds,
      'rows_per_batch': counts['rows'] / batches,
      'fill': counts['rows'] / max(counts['computed'], 1),
      'adding_share': min(blocked / seconds, 1.0),
    }
    for name, values in times.items():
      for percent in (50, 95):
        row[f'{name}_ms_p{percent}'] = (
          float(np.percentile(values, percent)) * 1e3 if len(values) else 0.0
        )
    # The round trip without the wait for a batch and the batch itself.
    row['transport_ms_p50'] = max(
      0.0, row['round_trip_ms_p50'] - row['wait_ms_p50'] - row['run_ms_p50']
    )
    return row
