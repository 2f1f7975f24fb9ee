"""Aggregation of logged rows over time."""

import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from acme.utils.loggers import base

from repertory.components.loggers import scalars


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
  period, which it includes, and by `flush` and `close`. It is written once: an
  error is raised without a retry.
  """

  def __init__(
    self,
    write: Callable[[dict[str, Any]], None],
    period_seconds: float = 1.0,
    *,
    latest: Collection[str] = (),
    clock: Callable[[], float] = time.monotonic,
  ):
    """Starts the first period.

    Args:
      write: Called with each merged row, such as the method of a logger.
      period_seconds: Minimum time between merged rows; 0 forwards every row.
      latest: Keys of counts and settings, of which the last value is kept.
      clock: Returns seconds.
    """
    self._write = write
    self._period_seconds = period_seconds
    self._latest = frozenset(latest)
    self._clock = clock
    self._start()

  def write(self, data: base.LoggingData) -> None:
    """Adds a row, and writes the merged row if the period is over.

    Raises:
      ValueError: If two keys would produce the same entry of the merged row
        (`loss_min` of `loss`, `count`), or a key's values are numbers and text.
    """
    row = scalars.to_plain(data)
    self._add({k: [value] for k, value in row.items() if value is not None}, 1)

  def write_rows(self, columns: Mapping[str, np.ndarray]) -> None:
    """Adds rows faster than separate writes.

    They are of the same time, so no merged row is written in between.

    Args:
      columns: Numbers by key, all `[K]`: an entry of each makes a row.

    Raises:
      ValueError: As in `write`.
    """
    rows = {key: column.tolist() for key, column in columns.items()}
    if num_rows := len(next(iter(rows.values()), ())):
      self._add(rows, num_rows)

  def flush(self) -> None:
    """Writes the merged row so far and starts a new period."""
    values, count = self._values, self._count
    self._start()
    if count:
      self._write(self._merge(values, count))

  def close(self) -> None:
    """Writes the merged row so far."""
    self.flush()

  def _start(self) -> None:
    self._started_at = self._clock()
    self._count = 0
    self._values: dict[str, list[Any]] = {}

  def _add(self, columns: Mapping[str, list[Any]], num_rows: int) -> None:
    self._count += num_rows
    for key, values in columns.items():
      if key in self._latest:
        self._values[key] = values[-1:]
      else:
        self._values.setdefault(key, []).extend(values)
    if self._clock() - self._started_at >= self._period_seconds:
      self.flush()

  def _merge(self, rows: dict[str, list[Any]], count: int) -> dict[str, Any]:
    entries: list[tuple[str, Any]] = []
    for key, values in rows.items():
      if key in self._latest or not scalars.is_number(values[-1]):
        entries.append((key, values[-1]))
        continue
      numbers = np.array(values, np.float64)
      finite = numbers[np.isfinite(numbers)]
      entries.append((key, finite.mean().item() if len(finite) else math.nan))
      if len(finite):
        entries.append((f'{key}_min', finite.min().item()))
        entries.append((f'{key}_max', finite.max().item()))
      if len(finite) != count:
        entries.append((f'{key}_count', len(finite)))
      if len(finite) < len(values):
        entries.append((f'{key}_nonfinite', len(values) - len(finite)))
    entries.append(('count', count))
    row = dict(entries)
    if len(row) < len(entries):
      raise ValueError(
        'data: expected keys whose merged entries have different names, found '
        f'{[name for name, _ in entries]}'
      )
    return row
