"""JSON Lines logger."""

import json
import math
import os
import threading
from typing import Any

from acme.utils.loggers import base

from repertory.components.loggers import scalars, torn_lines


class JsonlFile(base.Logger):
  """Appends one JSON object per row.

  NaN and infinity are written as `null`, because JSON has neither and strict
  readers refuse Python's extension; the CSV file distinguishes them. NumPy and
  TensorFlow scalars become numbers, arrays lists.

  Each row is flushed to the operating system. After a crash, a last line
  without a line break is dropped.

  Threads may share one; two processes must not.
  """

  def __init__(self, path: str | os.PathLike[str]):
    """Opens the file for appending and creates its directory.

    Raises:
      GarbledError: If the file contains anything but JSON objects.
    """
    path = os.path.realpath(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
      for number, line in enumerate(torn_lines.read_whole(path)):
        if line.endswith('\n') and not _is_object(line):
          raise torn_lines.GarbledError(
            f'line {number + 1} is not a JSON object'
          )
    except torn_lines.GarbledError as error:
      raise torn_lines.GarbledError(f'{path}: {error}') from None
    torn_lines.repair(path)
    self._lock = threading.Lock()
    self._file = open(path, 'a', encoding='utf-8')  # noqa: SIM115

  def write(self, data: base.LoggingData) -> None:
    """Appends a row."""
    row = _without_nonfinite(scalars.to_plain(data))
    line = json.dumps(row, allow_nan=False)
    with self._lock:
      self._file.write(line + '\n')
      self._file.flush()

  def close(self) -> None:
    """Closes the file."""
    with self._lock:
      self._file.close()


def _is_object(line: str) -> bool:
  try:
    return isinstance(json.loads(line), dict)
  except ValueError:
    return False


def _without_nonfinite(value: Any) -> Any:
  if isinstance(value, float) and not math.isfinite(value):
    return None
  if isinstance(value, dict):
    return {key: _without_nonfinite(item) for key, item in value.items()}
  if isinstance(value, list):
    return [_without_nonfinite(item) for item in value]
  return value
