"""Base class of callbacks."""

from collections.abc import Mapping
from typing import Any

from repertory.launch.experiments.callbacks import events


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
