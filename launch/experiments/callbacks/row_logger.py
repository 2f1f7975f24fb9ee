"""Additional loggers of the log rows of a run."""

import abc
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from repertory.launch.experiments.callbacks import events

if TYPE_CHECKING:
  from repertory.components import loggers


class RowLogger(abc.ABC):
  """Logger of all log rows of a run.

  Calls are sequential, in the same thread as callbacks. Its errors do not end
  the run: exceptions are reported as warnings. If `start` raises, the logger is
  not called again. If rows wait for `timeout_seconds`, the run ends.
  """

  def start(self, run: events.RunEvent) -> None:  # noqa: B027
    """Starts logging, or resumes if `run.is_resumed`."""

  @abc.abstractmethod
  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs a row.

    Args:
      label: 'actors', 'learner', 'replay', 'evaluator' or 'inference'.
      row: Plain values by column; see the operations page of the docs.
    """

  def close(self, end: events.EndEvent) -> None:  # noqa: B027
    """Flushes buffered rows and closes."""


class PerLabel(RowLogger):
  """Row logger with a logger per label, as those of `components.loggers`."""

  def __init__(self, make: 'Callable[[str], loggers.Logger]'):
    """Makes no loggers yet.

    Args:
      make: Factory from a label to a logger with Acme's interface. Called with
        the first row of the label, in the coordinator's process.
    """
    self._make = make
    self._loggers: dict[str, Any] = {}

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Passes a row to the logger of its label."""
    if label not in self._loggers:
      self._loggers[label] = self._make(label)
    self._loggers[label].write(row)

  def close(self, end: events.EndEvent) -> None:
    """Closes all loggers."""
    del end
    for logger in self._loggers.values():
      logger.close()
