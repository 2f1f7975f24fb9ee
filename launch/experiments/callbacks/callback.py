"""Base classes of callbacks and row loggers, and early stopping."""

import abc
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from repertory.components.config import settings
from repertory.launch.experiments.callbacks import events

if TYPE_CHECKING:
  from repertory.components import loggers


class Callback:
  """Callback for events of a run; override the methods of interest.

  Calls are sequential, in one thread for all callbacks and loggers of the run,
  in the coordinator's process; `on_start` comes first and `on_end` last. The
  run does not wait for them. During a call, episodes are merged and other
  events are queued. If one waits for `timeout_seconds`, the run ends with an
  error, as it does if a callback raises.
  """

  def on_start(self, run: events.RunEvent) -> None:
    """Called at the start of a run, also if it resumes from a checkpoint."""

  def on_episodes(self, episodes: events.EpisodesEvent) -> None:
    """Called with all training episodes that ended since the last call.

    Actors report episodes four times a second.
    """

  def on_learner_row(self, row: Mapping[str, Any]) -> None:
    """Called about once a second, with each row of `logs/learner.csv`."""

  def on_evaluation(self, evaluation: events.EvaluationEvent) -> None:
    """Called after each evaluation."""

  def on_end(self, end: events.EndEvent) -> None:
    """Called at the end, after the last checkpoint; also after a failure."""


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


@dataclasses.dataclass(frozen=True)
class StopAtReturn:
  """Stops a run once an evaluation reaches a mean return.

  Attributes:
    stop_at_return: The threshold, inclusive.
  """

  stop_at_return: float

  def __post_init__(self):
    if not math.isfinite(self.stop_at_return):
      raise settings.SettingError(
        'stop_at_return', f'must be a finite number; got {self.stop_at_return}.'
      )

  def __call__(self, status: 'loggers.Status') -> str:
    """Returns the reason to stop; '' to continue."""
    found = status.evaluation_return
    if found is None or found < self.stop_at_return:
      return ''
    return (
      f'after {status.evaluation_steps} steps an evaluation had a mean return '
      f'of {found:.4g}, and {self.stop_at_return:g} is enough'
    )
