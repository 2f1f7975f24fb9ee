"""What takes the rows of a run beside its own logs."""

import abc
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from repertory.launch.hooks import events

if TYPE_CHECKING:
  from repertory.components import loggers


class RowLogger(abc.ABC):
  """Takes all rows of a run, as its own logs get them.

  All calls come one after the other, in a thread of its own in the process of
  the coordinator. A run goes on without it: whatever it raises is a warning,
  and so are rows that it is too slow for. If `start` raises, it is not called
  any more.
  """

  def start(self, run: events.Run) -> None:  # noqa: B027
    """Begins to take rows, or goes on if `run.is_resumed`."""

  @abc.abstractmethod
  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Takes a row.

    Args:
      label: 'actors', 'learner', 'replay', 'evaluator' or 'inference'.
      row: Plain values by column: see the operations page of the docs.
    """

  def close(self, end: events.End) -> None:  # noqa: B027
    """Hands over what it holds back."""


class PerLabel(RowLogger):
  """Has a logger for each label, such as those of `components.loggers`."""

  def __init__(self, make: 'Callable[[str], loggers.Logger]'):
    """Makes none yet.

    Args:
      make: Maps a label to a logger, Acme's or one like it. Called with the
        first row of the label, where the rows are.
    """
    self._make = make
    self._loggers: dict[str, Any] = {}

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Hands a row to the logger of its label."""
    if label not in self._loggers:
      self._loggers[label] = self._make(label)
    self._loggers[label].write(row)

  def close(self, end: events.End) -> None:
    """Closes all."""
    del end
    for logger in self._loggers.values():
      logger.close()
