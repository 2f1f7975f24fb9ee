"""CSV and JSON Lines loggers.

Both append a line per row and flush it to the operating system. After a crash,
a last line without a line break is dropped, because a torn 123 may read 12.
Two processes, or threads, must not share a file.
"""

import csv
import json
import logging
import math
import os
import shutil
from collections.abc import Callable, Sequence
from typing import IO, Any, BinaryIO, TypeVar

from acme.utils.loggers import base

from repertory.components.loggers import scalars, torn_lines

_T = TypeVar('_T')

_log = logging.getLogger(__name__)


class CsvFile(base.Logger):
  """Writes one line per row under a header that grows with new columns.

  If a row has new columns, a copy of the file under the wider header replaces
  it at once. Columns that a row lacks, and None, are empty. NaN and infinity
  are `nan` and `inf`. Line breaks in text become spaces.

  Attributes:
    path: The file.
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
    self.path = os.path.realpath(path)
    self._columns, _ = _prepare(self.path, torn_lines.read_csv)
    self._file = _open(self.path, 'a')

  def write(self, data: base.LoggingData) -> None:
    """Appends a row, unless it is empty."""
    row = {_to_cell(key): _to_cell(value) for key, value in data.items()}
    if not row:
      return
    new_columns = [name for name in row if name not in self._columns]
    if new_columns:
      self._widen([*self._columns, *new_columns])
    _writer(self._file).writerow([row.get(c, '') for c in self._columns])
    self._file.flush()

  def close(self) -> None:
    """Closes the file."""
    self._file.close()

  def _widen(self, columns: Sequence[str]) -> None:
    """Replaces the file by one with more columns, or with its first header."""
    self._file.flush()  # Raises ValueError if it has been closed.
    temporary = f'{self.path}.tmp'
    with open(self.path, 'rb') as old, _open(temporary, 'w') as new:
      _, rows = torn_lines.read_csv(old)
      writer = _writer(new)
      writer.writerow(columns)
      for row in rows:
        writer.writerow(row + [''] * (len(columns) - len(row)))
      new.flush()
      os.fsync(new.fileno())
    shutil.copymode(self.path, temporary)
    os.replace(temporary, self.path)
    self._file.close()
    self._file = _open(self.path, 'a')
    self._columns = columns


class JsonlFile(base.Logger):
  """Appends one JSON object per row.

  NaN and infinity are written as `null`, because JSON has neither and strict
  readers refuse Python's extension; the CSV file distinguishes them. NumPy and
  TensorFlow scalars become numbers, arrays lists.

  Attributes:
    path: The file.
  """

  def __init__(self, path: str | os.PathLike[str]):
    """Opens the file for appending and creates its directory.

    Raises:
      GarbledError: If the file contains anything but JSON objects.
    """
    self.path = os.path.realpath(path)
    _prepare(self.path, _check_objects)
    self._file = _open(self.path, 'a')

  def write(self, data: base.LoggingData) -> None:
    """Appends a row."""
    row = _without_nonfinite(scalars.to_plain(data))
    line = json.dumps(row, allow_nan=False)
    self._file.write(line + '\n')
    self._file.flush()

  def close(self) -> None:
    """Closes the file."""
    self._file.close()


def _prepare(path: str, read: Callable[[BinaryIO], _T]) -> _T:
  """Makes a file, or reads it and drops a torn last line, with a warning."""
  os.makedirs(os.path.dirname(path), exist_ok=True)
  with open(path, 'a+b') as file:
    file.seek(0)
    try:
      found = read(file)
    except torn_lines.GarbledError as error:
      raise torn_lines.GarbledError(f'{path}: {error}') from error
    file.seek(0)
    *_, torn = file.read().rpartition(b'\n')
    if torn:
      # The next row would be appended to it, and both be lost.
      file.truncate(file.tell() - len(torn))
      _log.warning('Dropped a torn last line, %d bytes: %s', len(torn), path)
  return found


def _open(path: str, mode: str) -> IO[str]:
  return open(path, mode, newline='', encoding='utf-8')


def _writer(file: IO[str]):
  return csv.writer(file, lineterminator='\n')


def _to_cell(value: Any) -> Any:
  value = scalars.to_plain(value)
  if value is None:
    return ''
  return value if scalars.is_number(value) else scalars.to_line(value)


def _check_objects(file: BinaryIO) -> None:
  for number, line in enumerate(torn_lines.whole_lines(file), 1):
    try:
      is_object = isinstance(json.loads(line), dict)
    except ValueError:
      is_object = False
    if not is_object:
      raise torn_lines.GarbledError(f'line {number} is not a JSON object')


def _without_nonfinite(value: Any) -> Any:
  if isinstance(value, float) and not math.isfinite(value):
    return None
  if isinstance(value, dict):
    return {key: _without_nonfinite(item) for key, item in value.items()}
  if isinstance(value, list):
    return [_without_nonfinite(item) for item in value]
  return value
