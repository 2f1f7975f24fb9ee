"""How far a run is, counted on from those that it resumes."""

from collections.abc import Callable
from typing import Any

from repertory.launch.runs import session as session_lib


class Progress:
  """Counts steps and time, and knows when the run got on last.

  Attributes:
    steps: Environment steps.
    learner_steps: Updates.
    runs: Runs before this one.
  """

  def __init__(self, session: session_lib.Session, clock: Callable[[], float]):
    """Goes on where the resumed run ended.

    Args:
      clock: Tells seconds.
    """
    counts = session.counts
    self.steps, self.learner_steps = counts['steps'], counts['learner_steps']
    self.runs = counts['runs']
    self._clock = clock
    self._start = self._got_on_at = clock()
    self._seconds_before = session.elapsed_seconds

  @property
  def elapsed_seconds(self) -> float:
    """How long it has taken, with the runs before."""
    return self._seconds_before + self._clock() - self._start

  @property
  def position(self) -> dict[str, Any]:
    """Where the run is, as rows of the logs and the display tell it."""
    return {
      'steps': self.steps,
      'learner_steps': self.learner_steps,
      'elapsed_seconds': self.elapsed_seconds,
    }

  @property
  def idle_seconds(self) -> float:
    """How long the run has not got on."""
    return self._clock() - self._got_on_at

  def begin_earlier(self, seconds: float) -> None:
    """Counts time, too, that has passed before."""
    self._seconds_before += seconds

  def get_on(self) -> None:
    """Notes that the run gets on, or that nobody expects it to."""
    self._got_on_at = self._clock()

  def add_steps(self, steps: int) -> None:
    """Counts environment steps."""
    self.steps += steps
    if steps:
      self.get_on()

  def set_learner_steps(self, learner_steps: int) -> None:
    """Takes the learner's total of updates."""
    if learner_steps != self.learner_steps:
      self.get_on()
    self.learner_steps = learner_steps

  def save(self, num_episodes: int) -> dict[str, Any]:
    """Returns what a checkpoint holds of it, for the next run to go on.

    Args:
      num_episodes: Training episodes so far.
    """
    counts = {
      'steps': self.steps,
      'learner_steps': self.learner_steps,
      'runs': self.runs + 1,
      'episodes': num_episodes,
    }
    return {'counts': counts, 'elapsed_seconds': self.elapsed_seconds}
