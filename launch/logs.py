"""Where a run's rows go."""

import os
from collections.abc import Collection

from repertory.components import loggers

# Rows are aggregated, without loss, over so much time.
_ROW_PERIOD_SECONDS = 1.0


def make_logger(directory: str, label: str) -> loggers.Logger:
  """Makes a logger to `<label>.csv`, `<label>.jsonl` and TensorBoard.

  Args:
    directory: Of the run's logs.
    label: Of the rows.
  """
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
