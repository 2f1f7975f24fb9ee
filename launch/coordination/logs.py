"""Log files of a run."""

import os
from collections.abc import Callable, Collection, Mapping
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

  A run continues without them. A write failure causes a warning and a retry
  with the next row; removed files are created again; a garbled file of an
  earlier run is renamed.
  """

  def __init__(
    self,
    directory: str,
    warn: Callable[[str], None],
    run: int = 0,
    also: Callable[[str, Mapping[str, Any]], None] = lambda label, row: None,
    episode_rows: bool = False,
  ):
    self._directory = directory
    self._warn_user = warn
    self._run = run
    self._also = also
    self._warned: set[str] = set()
    self._loggers: dict[str, loggers.Logger] = {}
    self._merged: dict[str, loggers.Aggregate] = {}
    for label in ('nodes', 'actors', 'learner', 'replay', 'evaluator'):
      self._add(label)
    self._episodes: loggers.Logger | None = None
    if episode_rows:
      csv = os.path.join(directory, 'episodes.csv')
      self._episodes = _File(csv, lambda: loggers.CsvFile(csv), self._warn)

  def note(self, node: str, row: Mapping[str, Any]) -> None:
    """Writes a row on a node to `nodes.jsonl`."""
    self.write('nodes', {'node': node, 'run': self._run, **row})

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Writes a row at once, or merged with others of the same second."""
    if label not in self._loggers:
      self._add(label)
    self._loggers[label].write(row)

  def write_episodes(self, columns: Mapping[str, np.ndarray]) -> None:
    """Adds rows of episodes to 'actors', and to `episodes.csv` if enabled."""
    self._merged['actors'].write_rows(columns)
    if self._episodes is not None:
      for values in zip(*(column.tolist() for column in columns.values())):
        self._episodes.write(dict(zip(columns, values)))

  def flush(self) -> None:
    """Writes all pending rows."""
    for logger in self._merged.values():
      logger.flush()

  def close(self) -> None:
    """Writes all pending rows, and closes the files."""
    for logger in self._loggers.values():
      logger.close()
    if self._episodes is not None:
      self._episodes.close()

  def _add(self, label: str) -> None:
    def file(name: str, make: Callable[[str], loggers.Logger]) -> _File:
      path = os.path.join(self._directory, name)
      return _File(path, lambda: make(path), self._warn)

    rows = file(f'{label}.jsonl', loggers.JsonlFile)
    if label == 'nodes':
      self._loggers[label] = rows
      return
    csv = file(f'{label}.csv', loggers.CsvFile)
    board = file(
      'tensorboard', lambda path: loggers.TensorBoard(path, prefix=label)
    )
    logger = loggers.Dispatch(
      [csv, rows, board, FunctionLogger(label, self._also)]
    )
    if label in _LATEST:
      logger = self._merged[label] = aggregate(logger, _LATEST[label])
    self._loggers[label] = logger

  def _warn(self, message: str) -> None:
    if message not in self._warned:  # Many rows may cause the same message.
      self._warned.add(message)
      self._warn_user(message)


class FunctionLogger(loggers.Logger):
  """Passes rows with their label to a function."""

  def __init__(
    self, label: str, take: Callable[[str, Mapping[str, Any]], None]
  ):
    self._label = label
    self._take = take

  def write(self, data: Mapping[str, Any]) -> None:
    self._take(self._label, data)

  def close(self) -> None:
    pass


class _File(loggers.Logger):
  """Log file that survives its removal and a full disk."""

  def __init__(
    self,
    path: str,
    make: Callable[[], loggers.Logger],
    warn: Callable[[str], None],
  ):
    self._path = path
    self._make = make
    self._warn = warn
    self._logger: loggers.Logger | None = None
    self._try(self._open)

  def write(self, data: Mapping[str, Any]) -> None:
    def write_row():
      if self._logger is not None and not self._is_there():
        logger, self._logger = self._logger, None
        folder = os.path.dirname(self._path)
        self._warn(f'logs were removed from {folder}; new ones are started')
        logger.close()
      if self._logger is None:
        self._open()
      if self._logger is not None:
        self._logger.write(data)

    self._try(write_row)

  def close(self) -> None:
    if self._logger is not None:
      self._try(self._logger.close)

  def _open(self) -> None:
    try:
      self._logger = self._make()
    except (loggers.GarbledError, IsADirectoryError, FileExistsError) as error:
      aside = directories.set_aside(self._path)
      self._warn(f'log renamed to {aside}, a new one is started: {error}')
      self._logger = self._make()

  def _is_there(self) -> bool:
    return os.path.exists(getattr(self._logger, 'path', self._path))

  def _try(self, work: Callable[[], None]) -> None:
    try:
      work()
    except OSError as error:
      self._warn(
        f'{self._path} cannot be written: {type(error).__name__}: {error}'
      )


def aggregate(
  to: loggers.Logger, latest: Collection[str] = ()
) -> loggers.Aggregate:
  """Merges rows over a second; see `loggers.Aggregate`."""
  return loggers.Aggregate(to, _ROW_PERIOD_SECONDS, latest=latest)
