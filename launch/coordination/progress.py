"""Step counts and elapsed time of a run, earlier runs included."""

from collections.abc import Callable
from typing import Any

from repertory.launch.opening import session as session_lib


class Progress:
  """Counts steps and time, and the time since the latest progress.

  Attributes:
    steps: Environment steps.
    learner_steps: Learner steps.
    runs: Number of runs before this one.
  """

  def __init__(self, session: session_lib.Session, clock: Callable[[], float]):
    counts = session.counts
    self.steps, self.learner_steps = counts['steps'], counts['learner_steps']
    self.runs = counts['runs']
    self._clock = clock
    self._start = self._got_on_at = clock()
    self._seconds_before = session.elapsed_seconds

  @property
  def elapsed_seconds(self) -> float:
    """Elapsed time, earlier runs included."""
    return self._seconds_before + self._clock() - self._start

  @property
  def position(self) -> dict[str, Any]:
    """Step counts and elapsed time, as columns of the logs."""
    return {
      'steps': self.steps,
      'learner_steps': self.learner_steps,
      'elapsed_seconds': self.elapsed_seconds,
    }

  @property
  def idle_seconds(self) -> float:
    """Time since the latest progress."""
    return self._clock() - self._got_on_at

  def begin_earlier(self, seconds: float) -> None:
    """Adds time that passed before this object was created."""
    self._seconds_before += seconds

  def mark_progress(self) -> None:
    """Resets the idle time."""
    self._got_on_at = self._clock()

  def add_steps(self, steps: int) -> None:
    """Counts environment steps."""
    self.steps += steps
    if steps:
      self.mark_progress()

  def set_learner_steps(self, learner_steps: int) -> None:
    """Sets the total of learner steps."""
    if learner_steps != self.learner_steps:
      self.mark_progress()
    self.learner_steps = learner_steps

  def save(self, num_episodes: int) -> dict[str, Any]:
    """Returns the checkpoint state from which the next run resumes."""
    counts = {
      'steps': self.steps,
      'learner_steps': self.learner_steps,
      'runs': self.runs + 1,
      'episodes': num_episodes,
    }
    return {'counts': counts, 'elapsed_seconds': self.elapsed_seconds}
