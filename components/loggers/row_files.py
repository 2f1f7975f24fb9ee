"""CSV and JSON Lines loggers.

Both append a line per row to a file that is opened for each, so a file that was
removed begins again. After a crash, a last line without a line break is
dropped, because a torn 123 may read 12. Two processes must not share a file.
"""

import abc
import csv
import io
import json
import logging
import math
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, TypeVar

from acme.utils.loggers import base

from repertory.components.loggers import scalars, torn_lines

_T = TypeVar('_T')

_log = logging.getLogger(__name__)


class RowFile(base.Logger):
  """Logger that appends rows to a file, which is closed after each."""

  @abc.abstractmethod
  def write_all(self, rows: Iterable[Mapping[str, Any]]) -> None:
    """Appends several rows."""

  def write(self, data: base.LoggingData) -> None:
    """Appends a row."""
    self.write_all([data])

  def close(self) -> None:
    """Does nothing."""


class CsvFile(RowFile):
  """Writes one line per row under a header that grows with new columns.

  If a row has new columns, a copy of the file under the wider header replaces
  it at once. Columns that a row lacks, and None, are empty. NaN and infinity
  are `nan` and `inf`. Line breaks in text become spaces.
  """

  def __init__(self, path: str | os.PathLike[str]):
    """Makes the file and its directory.

    Args:
      path: The file, which keeps the rows of an earlier run. A link is
        followed.

    Raises:
      GarbledError: If no rows can be appended to the file: it is not text, has
        no header or duplicate columns, or rows longer than the header.
    """
    self._path = os.path.realpath(path)
    self._columns, _ = _prepare(self._path, torn_lines.read_csv)

  def write_all(self, rows: Iterable[Mapping[str, Any]]) -> None:
    """Appends several rows; empty ones are left out."""
    rows = [{_to_cell(k): _to_cell(v) for k, v in r.items()} for r in rows if r]
    if not rows:  # An empty file would get an empty header.
      return
    columns = list(
      dict.fromkeys([*self._columns, *(k for r in rows for k in r)])
    )
    if self._columns and len(columns) > len(self._columns):
      self._widen(columns)
    self._columns = columns
    lines = [[row.get(column, '') for column in columns] for row in rows]
    append(self._path, _to_csv(lines), _to_csv([columns]))

  def _widen(self, columns: Sequence[str]) -> None:
    """Replaces the file by one with more columns."""
    _, rows = _prepare(self._path, torn_lines.read_csv)
    rows = [row + [''] * (len(columns) - len(row)) for row in rows]
    temporary = f'{self._path}.tmp'
    with open(temporary, 'wb') as new:
      new.write(_to_csv([columns, *rows]))
      new.flush()
      os.fsync(new.fileno())
    shutil.copymode(self._path, temporary)
    os.replace(temporary, self._path)


class JsonlFile(RowFile):
  """Appends one JSON object per row.

  NaN and infinity are written as `null`, because JSON has neither and strict
  readers refuse Python's extension; the CSV file distinguishes them. NumPy and
  TensorFlow scalars become numbers, arrays lists.
  """

  def __init__(self, path: str | os.PathLike[str]):
    """Makes the file and its directory.

    Raises:
      GarbledError: If the file contains anything but JSON objects.
    """
    self._path = os.path.realpath(path)
    _prepare(self._path, _check_objects)

  def write_all(self, rows):
    plain = [_without_nonfinite(scalars.to_plain(row)) for row in rows]
    lines = [f'{json.dumps(row, allow_nan=False)}\n' for row in plain]
    append(self._path, ''.join(lines).encode())


def append(path: str, data: bytes, header: bytes = b'') -> None:
  """Appends all of the data or, if an OSError is raised, nothing.

  An empty or missing file gets the header first.
  """
  os.makedirs(os.path.dirname(path), exist_ok=True)
  with open(path, 'ab', buffering=0) as file:
    size = file.tell()
    data = data if size else header + data
    try:
      while data:
        data = data[file.write(data) :]
    except OSError:
      file.truncate(size)
      raise


def _prepare(path: str, read: Callable[[BinaryIO], _T]) -> _T:
  """Makes a file, or reads it and drops a torn last line, with a warning."""
  append(path, b'')
  with open(path, 'r+b') as file:
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


def _to_csv(rows: Iterable[Sequence[Any]]) -> bytes:
  text = io.StringIO()
  csv.writer(text, lineterminator='\n').writerows(rows)
  return text.getvalue().encode()


def _to_cell(value: Any) -> Any:
  value = scalars.to_plain(value)
  if value is None or scalars.is_number(value):
    return value
  return ' '.join(str(value).splitlines())


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
