"""CSV logger."""

import csv
import os
import shutil
import threading
from collections.abc import Sequence
from typing import IO, Any

from acme.utils.loggers import base

from repertory.components.loggers import scalars, torn_lines


class CsvFile(base.Logger):
  """Writes one line per row under a header that grows with new columns.

  If a row has new columns, a copy of the file under the wider header replaces
  it at once. Columns that a row lacks, and None, are empty. NaN and infinity
  are `nan` and `inf`. Line breaks in text become spaces.

  Each row is flushed to the operating system. After a crash, a last line
  without a line break is dropped, because a torn 123 may read 12.

  Threads may share one; two processes must not.
  """

  def __init__(self, path: str | os.PathLike[str]):
    """Opens the file and creates its directory.

    Args:
      path: The file, which keeps the rows of an earlier run. A link is
        followed.

    Raises:
      GarbledError: If no rows can be appended to the file: it is not text, has
        no header or duplicate columns, or rows longer than the header.
    """
    self._path = os.path.realpath(path)
    self._lock = threading.Lock()
    os.makedirs(os.path.dirname(self._path), exist_ok=True)
    self._columns = _read_columns(self._path)
    torn_lines.repair(self._path)
    self._file = _open(self._path, 'a')

  def write(self, data: base.LoggingData) -> None:
    """Appends a row, unless it is empty."""
    row = {_to_cell(key): _to_cell(value) for key, value in data.items()}
    if not row:
      return
    with self._lock:
      new_columns = [name for name in row if name not in self._columns]
      if new_columns:
        self._widen(new_columns)
      _writer(self._file).writerow([row.get(c, '') for c in self._columns])
      self._file.flush()

  def close(self) -> None:
    """Closes the file."""
    with self._lock:
      self._file.close()

  def _widen(self, new_columns: Sequence[str]) -> None:
    """Replaces the file by one with more columns, or with its first header."""
    if self._file.closed:
      raise ValueError(f'write() after close() of {self._path}')
    columns = [*self._columns, *new_columns]
    temporary = f'{self._path}.tmp'
    with _open(self._path, 'r') as old, _open(temporary, 'w') as new:
      rows = csv.reader(old)
      next(rows, None)
      writer = _writer(new)
      writer.writerow(columns)
      for row in rows:
        if row:
          writer.writerow(row + [''] * (len(columns) - len(row)))
      new.flush()
      os.fsync(new.fileno())
    shutil.copymode(self._path, temporary)
    os.replace(temporary, self._path)
    self._file.close()
    self._file = _open(self._path, 'a')
    self._columns = columns


def _open(path: str, mode: str) -> IO[str]:
  return open(path, mode, newline='', encoding='utf-8')


def _writer(file: IO[str]):
  return csv.writer(file, lineterminator='\n')


def _read_columns(path: str) -> list[str]:
  """Returns the header of a file, if it has one and all rows fit."""
  try:
    lines = list(torn_lines.read_whole(path))
    if len(lines) == 1 and not lines[0].endswith('\n'):
      return []  # The header is torn.
    rows = csv.reader(lines, strict=True)
    columns = next(rows, [])
    longest = max(map(len, rows), default=0)
  except (csv.Error, torn_lines.GarbledError) as error:
    raise torn_lines.GarbledError(f'{path}: {error}') from error
  if len(set(columns)) != len(columns) or any(map(_is_no_name, columns)):
    raise torn_lines.GarbledError(
      f'{path}: expected a header of names without repeated columns, found '
      f'{columns}'
    )
  if longest > len(columns):
    raise torn_lines.GarbledError(
      f'{path}: expected rows of at most {len(columns)} columns, as in the '
      f'header, found {longest}'
    )
  return columns


def _is_no_name(column: str) -> bool:
  try:
    float(column or 0)
  except ValueError:
    return False
  return True


def _to_cell(value: Any) -> Any:
  value = scalars.to_plain(value)
  if value is None:
    return ''
  if scalars.is_number(value):
    return value
  return scalars.to_line(value)
