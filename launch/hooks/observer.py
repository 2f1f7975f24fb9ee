"""What looks on while a run goes on."""

from collections.abc import Mapping
from typing import Any

from repertory.launch.hooks import events


class Observer:
  """Is called when something has happened in a run; override what is of use.

  All calls come one after the other, in a thread of its own in the process of
  the coordinator; `on_start` first and `on_end` last. Nobody waits for them.
  While one lasts, episodes are gathered, and whatever else happens waits: no
  more than about 64 MB of it, or the run ends with an error that says so. So
  does a run whose observer raises.
  """

  def on_start(self, run: events.Run) -> None:
    """Hears of a start, also of one that goes on from a checkpoint."""

  def on_episodes(self, episodes: events.Episodes) -> None:
    """Hears of training episodes: all that ended since it heard last.

    Actors tell of theirs four times a second.
    """

  def on_learner_row(self, row: Mapping[str, Any]) -> None:
    """Hears of a row of `logs/learner.csv`: the updates of about a second."""

  def on_evaluation(self, evaluation: events.Evaluation) -> None:
    """Hears of an evaluation."""

  def on_end(self, end: events.End) -> None:
    """Hears of the end, after the last checkpoint; also of a failure."""
