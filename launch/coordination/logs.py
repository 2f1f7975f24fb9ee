"""Log files of a run."""

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from repertory.components import loggers, replay
from repertory.launch.coordination import kinds
from repertory.launch.experiments import directories

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
    self._loggers: dict[tuple[str, str], Any] = {}  # By label and file.
    self._merged = {
      label: loggers.Aggregate(
        functools.partial(self._write_now, label), latest=latest
      )
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
    for name, make in self._files_of(label).items():
      path = os.path.join(self._directory, name)
      try:
        if (label, name) not in self._loggers:
          self._loggers[label, name] = self._open(path, make)
        self._loggers[label, name].write_all(rows)
      except OSError as error:
        problem = f'{type(error).__name__}: {error}'
        self._warn(f'{path} cannot be written: {problem}')
    if label not in ('nodes', 'episodes'):
      self._also(label, *rows)

  def _files_of(self, label: str) -> Mapping[str, Callable[[str], Any]]:
    """Returns a function that makes the logger of each file of a label."""
    csv = {f'{label}.csv': loggers.CsvFile}
    rows = {f'{label}.jsonl': loggers.JsonlFile}
    if label in ('nodes', 'episodes'):
      return rows if label == 'nodes' else csv
    board = functools.partial(loggers.TensorBoard, prefix=label)
    return {**csv, **rows, 'tensorboard': board}

  def _open(self, path: str, make: Callable[[str], Any]) -> Any:
    try:
      return make(path)
    except (loggers.GarbledError, IsADirectoryError, FileExistsError) as error:
      aside = directories.set_aside(path)
      self._warn(f'log renamed to {aside}, a new one is started: {error}')
      return make(path)

  def _warn(self, message: str) -> None:
    if message not in self._warned:  # Many rows may cause the same message.
      self._warned.add(message)
      self._warn_user(message)
