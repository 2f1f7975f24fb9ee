"""Phases of a run, and the reason of its end."""

import itertools
from collections.abc import Callable

from repertory.launch.coordination import reports
from repertory.launch.experiments import callbacks, failures


class Phases:
  """State machine of the phases of a run.

  Attributes:
    phase: One of `reports.PHASES`, or `reports.STOPPING`.
    failure: First failure of the run; None without one.
    stopped_early: Reason to end before all steps are taken; '' without one.
  """

  def __init__(self):
    self.phase = reports.ACTING
    self.failure: failures.Failure | None = None
    self.stopped_early = ''

  @property
  def is_resumed(self) -> bool:
    """Whether the run is neither stopping nor done."""
    return self.phase not in (reports.STOPPING, reports.DONE)

  @property
  def has_steps_to_take(self) -> bool:
    """Whether environment steps remain to be taken."""
    return self.phase == reports.ACTING and not self.stopped_early

  def go_through(self, have_finished: Callable[[str], bool]) -> None:
    """Advances past all phases whose nodes are done."""
    for phase, following in itertools.pairwise(reports.PHASES):
      if self.phase == phase and have_finished(phase):
        self.phase = following

  def stop(self) -> bool:
    """Stops the run; returns False if it had already ended."""
    if not self.is_resumed:
      return False
    self.phase = reports.STOPPING
    return True

  def stop_early(self, reason: str) -> bool:
    """Ends acting; returns False if it had already ended."""
    if not self.has_steps_to_take:
      return False
    self.stopped_early = reason
    return True

  def fail(self, failure: failures.Failure) -> bool:
    """Stops the run with a failure; returns whether it is the first."""
    self.stop()
    if self.failure is not None:
      return False
    self.failure = failure
    return True

  def describe_end(self, why_stopped: str) -> tuple[str, str]:
    """Returns outcome and reason of the end, as in `callbacks.End`."""
    if self.failure is not None:
      return callbacks.FAILED, self.failure.summary
    if self.phase == reports.STOPPING:
      return callbacks.INTERRUPTED, why_stopped
    if self.stopped_early:
      return callbacks.STOPPED_EARLY, self.stopped_early
    return callbacks.DONE, ''
