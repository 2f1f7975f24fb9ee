"""Log files of a run."""

import functools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components import loggers, replay
from repertory.launch.coordination import kinds
from repertory.launch.experiments import directories

# Rows are aggregated over this period.
_ROW_PERIOD_SECONDS = 1.0

_POSITION = ('steps', 'learner_steps', 'elapsed_seconds')
_TABLE_COLUMNS = (
  *_POSITION, 'size', 'inserts', 'samples', 'samples_per_insert',
  'target_samples_per_insert',
)  # fmt: skip
# By label: columns of merged rows whose latest value is kept.
_LATEST = {
  'actors': (*_POSITION, 'episodes'),
  kinds.REPLAY.name: _TABLE_COLUMNS,
  replay.TRAIN_BUFFER: _TABLE_COLUMNS,
}


def label_of(table: replay.TableSpec) -> str:
  """Returns the label of the rows on a table."""
  is_second = table.name == replay.TRAIN_BUFFER
  return table.name if is_second else kinds.REPLAY.name


class RunLogs:
  """All logs of a run: training metrics, and events of nodes.

  A run continues without them. A write failure causes a warning, and the row is
  lost; removed files are created again; a garbled file of an earlier run is
  renamed.
  """

  def __init__(
    self,
    directory: str,
    warn: Callable[[str], None],
    run: int,
    also: Callable[[str, Mapping[str, Any]], None],
    episode_rows: bool,
  ):
    """Opens no files yet; `also` gets the rows except those on nodes."""
    self._directory = directory
    self._warn_user = warn
    self._run = run
    self._also = also
    self._episode_rows = episode_rows
    self._warned: set[str] = set()
    self._files: dict[str, list[_File]] = {}
    self._merged = {
      label: aggregate(functools.partial(self._write_now, label), latest)
      for label, latest in _LATEST.items()
    }

  def note(self, node: str, row: Mapping[str, Any]) -> None:
    """Writes a row on a node to `nodes.jsonl`."""
    self.write('nodes', {'node': node, 'run': self._run, **row})

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Writes a row at once, or merged with others of the same second."""
    if label in self._merged:
      self._merged[label].write(row)
    else:
      self._write_now(label, row)

  def write_episodes(self, columns: Mapping[str, np.ndarray]) -> None:
    """Adds rows of episodes to 'actors', and to `episodes.csv` if enabled."""
    self._merged['actors'].write_rows(columns)
    if self._episode_rows:
      rows = zip(*(column.tolist() for column in columns.values()))
      self._write_now('episodes', *(dict(zip(columns, row)) for row in rows))

  def flush(self) -> None:
    """Writes all pending rows."""
    for merged in self._merged.values():
      merged.flush()

  def _write_now(self, label: str, *rows: Mapping[str, Any]) -> None:
    if label not in self._files:
      self._files[label] = self._make_files(label)
    for file in self._files[label]:
      file.write(rows)
    if label not in ('nodes', 'episodes'):
      self._also(label, *rows)

  def _make_files(self, label: str) -> 'list[_File]':
    def file(name: str, make: Callable[[str], Any]) -> _File:
      return _File(os.path.join(self._directory, name), make, self._warn)

    csv = file(f'{label}.csv', loggers.CsvFile)
    rows = file(f'{label}.jsonl', loggers.JsonlFile)
    board = file(
      'tensorboard', lambda path: loggers.TensorBoard(path, prefix=label)
    )
    only = {'nodes': [rows], 'episodes': [csv]}
    return only.get(label, [csv, rows, board])

  def _warn(self, message: str) -> None:
    if message not in self._warned:  # Many rows may cause the same message.
      self._warned.add(message)
      self._warn_user(message)


class _File:
  """Log file of rows that survives a full disk; opened with the first row."""

  def __init__(
    self, path: str, make: Callable[[str], Any], warn: Callable[[str], None]
  ):
    self._path = path
    self._make = make
    self._warn = warn
    self._logger: Any = None

  def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
    try:
      self._logger = self._logger or self._open()
      if isinstance(self._logger, loggers.CsvFile):
        self._logger.write_all(rows)
      else:
        for row in rows:
          self._logger.write(row)
    except OSError as error:
      self._warn(
        f'{self._path} cannot be written: {type(error).__name__}: {error}'
      )

  def _open(self) -> Any:
    try:
      return self._make(self._path)
    except (loggers.GarbledError, IsADirectoryError, FileExistsError) as error:
      aside = directories.set_aside(self._path)
      self._warn(f'log renamed to {aside}, a new one is started: {error}')
      return self._make(self._path)


def aggregate(
  write: Callable[[Mapping[str, Any]], None], latest: Collection[str] = ()
) -> loggers.Aggregate:
  """Merges rows over a second; see `loggers.Aggregate`."""
  return loggers.Aggregate(write, _ROW_PERIOD_SECONDS, latest=latest)
