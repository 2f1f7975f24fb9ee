"""Aggregation of logged rows over time."""

import math
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from acme.utils.loggers import base

from repertory.components.loggers import scalars

_COUNT = 'count'


class Aggregate(base.Logger):
  """Merges the rows of a period into one, unlike filters that drop rows.

  A merged row summarizes the rows since the previous one:

  - `count`: number of rows. Over all merged rows this sums to the number of
    writes.
  - `<key>`, `<key>_min` and `<key>_max` for numbers: mean, minimum and maximum.
  - `<key>` alone for the keys in `latest`, and for text and lists: the last
    value. None counts as missing.
  - `<key>_count`, where it differs from `count`: number of values in the mean,
    as some rows lacked the key or had no finite value. Hence Σ mean ×
    (`<key>_count`, else `count`) is the sum of all finite values.
  - `<key>_nonfinite`, unless 0: number of NaN or infinite values. They are left
    out of the aggregates above, so one NaN neither hides nor poisons the rest
    of a period; if no value was finite, `<key>` is NaN.

  A merged row is written with the first write at or after the end of the
  period, which it includes, and by `flush` and `close`. It is written once: if
  `to` fails, the error is raised without a retry, because other loggers of a
  `Dispatch` have received the row. Threads may share one.
  """

  def __init__(
    self,
    to: base.Logger,
    period_seconds: float,
    *,
    latest: Collection[str] = (),
    clock: Callable[[], float] = time.monotonic,
  ):
    """Starts the first period.

    Args:
      to: Logger for the merged rows, closed with this one.
      period_seconds: Minimum time between merged rows; 0 forwards every row.
      latest: Keys of counts and settings, of which the last value is kept.
      clock: Returns seconds.

    Raises:
      ValueError: If the period is negative or `latest` is a text.
    """
    if not period_seconds >= 0:
      raise ValueError(
        f'period_seconds: expected at least 0, found {period_seconds}'
      )
    if isinstance(latest, str):
      raise ValueError(f'latest: expected several keys, found text {latest!r}')
    self._to = to
    self._period_seconds = period_seconds
    self._clock = clock
    self._lock = threading.Lock()
    self._closed = False
    # Whether numbers are averaged, by key.
    self._is_averaged = dict.fromkeys(latest, False)
    self._latest = frozenset(latest)
    self._start()

  def write(self, data: base.LoggingData) -> None:
    """Adds a row, and writes the merged row if the period is over.

    Raises:
      ValueError: If a key's values change between numbers and others; the row
        is then not counted. Or if two keys would produce the same entry of the
        merged row (`loss_min` of `loss`, `count`).
    """
    row = {key: scalars.to_plain(value) for key, value in data.items()}
    self._add({k: [value] for k, value in row.items() if value is not None}, 1)

  def write_rows(self, columns: Mapping[str, np.ndarray]) -> None:
    """Adds rows faster than separate writes.

    They are of the same time, so no merged row is written in between.

    Args:
      columns: Numbers by key, all `[K]`: an entry of each makes a row.

    Raises:
      ValueError: As in `write`; then none of the rows is counted.
    """
    num_rows = len(next(iter(columns.values()), ()))
    if num_rows:
      self._add({k: column.tolist() for k, column in columns.items()}, num_rows)

  def flush(self) -> None:
    """Writes the merged row so far and starts a new period."""
    with self._lock:
      self._write_merged()

  def close(self) -> None:
    """Writes the merged row so far and closes the wrapped logger."""
    with self._lock:
      if self._closed:
        return
      self._closed = True
      try:
        self._write_merged()
      finally:
        self._to.close()

  def _start(self) -> None:
    self._started = self._clock()
    self._count = 0
    # All numbers, or the last value, by key.
    self._values: dict[str, list[Any]] = {}

  def _add(self, columns: Mapping[str, list[Any]], num_rows: int) -> None:
    with self._lock:
      if self._closed:
        raise ValueError('write() after close()')
      for key, values in columns.items():
        is_number = scalars.is_number(values[-1])
        expected = self._is_averaged.setdefault(key, is_number)
        if key not in self._latest and expected != is_number:
          raise ValueError(
            f'data: expected {"a" if expected else "no"} number under {key!r}, '
            f'as before, found {values[-1]!r}'
          )
      self._count += num_rows
      for key, values in columns.items():
        if self._is_averaged[key]:
          self._values.setdefault(key, []).extend(values)
        else:
          self._values[key] = values[-1:]
      if self._clock() - self._started >= self._period_seconds:
        self._write_merged()

  def _write_merged(self) -> None:
    try:
      row = self._merge()
    finally:
      self._start()
    if row:
      self._to.write(row)

  def _merge(self) -> dict[str, Any]:
    if not self._count:
      return {}
    entries: list[tuple[str, Any]] = []
    for key, values in self._values.items():
      if not self._is_averaged[key]:
        entries.append((key, values[-1]))
        continue
      numbers = np.array(values, np.float64)
      finite = numbers[np.isfinite(numbers)]
      entries.append((key, finite.mean().item() if len(finite) else math.nan))
      if len(finite):
        entries.append((f'{key}_min', finite.min().item()))
        entries.append((f'{key}_max', finite.max().item()))
      if len(finite) != self._count:
        entries.append((f'{key}_count', len(finite)))
      if len(finite) < len(values):
        entries.append((f'{key}_nonfinite', len(values) - len(finite)))
    entries.append((_COUNT, self._count))
    row = dict(entries)
    if len(row) < len(entries):
      raise ValueError(
        'data: expected keys whose merged entries have different names, found '
        f'{[name for name, _ in entries]}'
      )
    return row
