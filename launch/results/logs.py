"""Logs of a run as columns, tolerant of torn or missing files."""

import csv
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from repertory.components.config import regular_files
from repertory.components.loggers import torn_lines

Columns = Mapping[str, np.ndarray]

_TAIL_BYTES = 2**16  # Enough for the last row.


class Logs:
  """CSV logs of one run by label: 'actors', 'learner', 'evaluator' and others.

  `logs['evaluator']['episode_return']` is an array `[N]`. Numbers are float64,
  NaN where missing, and text is an array of objects. A log is read once, on
  first access. Rows that a killed run wrote after its last checkpoint, and
  whose steps the resumed run repeated, are left out, so `steps` never
  decreases. Only regular files are read; symbolic links are not followed.

  Attributes:
    problems: Descriptions of logs that were accessed and cannot be read.
  """

  def __init__(self, directory: str):
    """Reads nothing yet.

    Args:
      directory: The folder of the logs, in the directory of a run.
    """
    self._run, self._folder = os.path.split(directory)
    self._read: dict[str, Columns] = {}
    self.problems: list[str] = []

  def __getitem__(self, label: str) -> Columns:
    """Returns the columns of a log by name.

    Raises:
      KeyError: If there is no such log.
    """
    if not (columns := self.get(label)):
      raise KeyError(label)
    return columns

  def get(self, label: str) -> Columns:
    """Returns the columns of a log by name; none if there is no such log."""
    if label not in self._read:
      self._read[label] = self._load(label)
    return self._read[label]

  def column(self, label: str, name: str) -> np.ndarray:
    """Returns a column of numbers, `[N]`; empty if the log lacks it."""
    values = self.get(label).get(name)
    if values is None or values.dtype.kind != 'f':
      return np.empty(0)
    return values

  def last(self, label: str, name: str) -> float | None:
    """Returns a number of a log's last row, without reading all of it."""
    try:
      with self._open(f'{label}.csv') as file:
        header = file.readline()
        size = file.seek(0, os.SEEK_END)
        file.seek(max(len(header), size - _TAIL_BYTES))
        line = file.read().rpartition(b'\n')[0].rpartition(b'\n')[2]
      columns, row = csv.reader([header.decode(), line.decode()])
      return float(dict(zip(columns, row))[name])
    except (OSError, ValueError, KeyError, csv.Error):
      return None

  def rows(self, label: str) -> list[dict[str, Any]]:
    """Returns all lines of a log of JSON lines, such as 'nodes'.

    Lines that are no JSON objects are left out.
    """
    found = []
    try:
      with self._open(f'{label}.jsonl') as file:
        for line in file:
          try:
            row = json.loads(line)
          except (ValueError, RecursionError):
            continue
          if isinstance(row, dict):
            found.append(row)
    except FileNotFoundError:
      pass
    except OSError as error:
      self.problems.append(f'{error.filename}: {explain(error)}')
    return found

  def _load(self, label: str) -> Columns:
    try:
      with self._open(f'{label}.csv') as file:
        names, rows = torn_lines.read_csv(file)
    except FileNotFoundError:
      return {}
    except (OSError, torn_lines.GarbledError) as error:
      path = os.path.join(self._run, self._folder, f'{label}.csv')
      self.problems.append(f'{path}: {explain(error)}')
      return {}
    if not rows:
      return {}
    # Rows from before a column was added are shorter.
    cells = zip(*(row + [''] * (len(names) - len(row)) for row in rows))
    columns = {name: _to_array(column) for name, column in zip(names, cells)}
    steps = columns.get('steps')
    if steps is None or steps.dtype.kind != 'f':
      return columns
    # Without rows that have more steps than a later one. Rows without steps
    # (NaN) are kept, and affect no others.
    kept = ~(steps > np.fmin.accumulate(steps[::-1])[::-1])
    return {name: column[kept] for name, column in columns.items()}

  def _open(self, name: str) -> BinaryIO:
    path = os.path.join(self._folder, name)
    return regular_files.open_inside(self._run, path)


def _to_array(cells: Sequence[str]) -> np.ndarray:
  try:
    return np.array([cell or 'nan' for cell in cells], np.float64)
  except ValueError:
    return np.array(cells, object)


def explain(error: Exception) -> str:
  """Returns the message of an error of a file or its content."""
  text = getattr(error, 'strerror', None)
  return text or f'{type(error).__name__}: {error}'
