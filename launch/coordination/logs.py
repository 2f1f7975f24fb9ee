"""Where a run's rows go."""

import os
from collections.abc import Collection, Mapping
from typing import Any

from repertory.components import loggers

# Rows are aggregated, without loss, over so much time.
_ROW_PERIOD_SECONDS = 1.0

_POSITION = ('steps', 'learner_steps', 'elapsed_seconds')
# By label: columns that tell what is at a moment, of rows that are merged.
_LATEST = {
  'actors': (*_POSITION, 'episodes'),
  'replay': (
    *_POSITION,
    'size',
    'inserts',
    'samples',
    'samples_per_insert',
    'target_samples_per_insert',
  ),
}


class RunLogs:
  """All logs of a run: those of training, and one on the nodes."""

  def __init__(self, directory: str):
    """Makes the files that every run has."""
    self._directory = directory
    self._loggers: dict[str, loggers.Logger] = {
      'nodes': loggers.JsonlFile(os.path.join(directory, 'nodes.jsonl'))
    }
    for label in ('actors', 'learner', 'replay', 'evaluator'):
      self._add(label)

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Writes a row, at once or merged with others of the same second."""
    if label not in self._loggers:
      self._add(label)
    self._loggers[label].write(row)

  def close(self) -> None:
    """Writes what is held back."""
    for logger in self._loggers.values():
      logger.close()

  def _add(self, label: str) -> None:
    logger = make_logger(self._directory, label)
    if label in _LATEST:
      logger = aggregate(logger, _LATEST[label])
    self._loggers[label] = logger


def make_logger(directory: str, label: str) -> loggers.Logger:
  """Makes a logger to `<label>.csv`, `<label>.jsonl` and TensorBoard."""
  return loggers.Dispatch(
    [
      loggers.CsvFile(os.path.join(directory, f'{label}.csv')),
      loggers.JsonlFile(os.path.join(directory, f'{label}.jsonl')),
      loggers.TensorBoard(os.path.join(directory, 'tensorboard'), prefix=label),
    ]
  )


def aggregate(
  to: loggers.Logger, latest: Collection[str] = ()
) -> loggers.Aggregate:
  """Merges rows over a second; see `loggers.Aggregate`."""
  return loggers.Aggregate(to, _ROW_PERIOD_SECONDS, latest=latest)
