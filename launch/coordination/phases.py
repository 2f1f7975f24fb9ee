"""Which phase a run is in, and why it ends."""

import itertools
from collections.abc import Callable

from repertory.launch import failures, hooks
from repertory.launch.coordination import reports


class Phases:
  """The phases of a run, one after the other, or an end before the last.

  Attributes:
    phase: One of `reports.PHASES`, or `reports.STOPPING`.
    failure: Why the run failed; None if it did not. The first one counts.
    stopped_early: Why it ends before all steps are taken; '' if it does not.
  """

  def __init__(self):
    """Begins with the first one."""
    self.phase = reports.ACTING
    self.failure: failures.Failure | None = None
    self.stopped_early = ''

  @property
  def is_going_on(self) -> bool:
    """Whether the run neither stops nor is done."""
    return self.phase not in (reports.STOPPING, reports.DONE)

  @property
  def has_steps_to_take(self) -> bool:
    """Whether there is acting to be done."""
    return self.phase == reports.ACTING and not self.stopped_early

  def go_through(self, have_finished: Callable[[str], bool]) -> None:
    """Ends the phases in which all have done their part.

    Args:
      have_finished: Returns whether they have in a phase.
    """
    for phase, following in itertools.pairwise(reports.PHASES):
      if self.phase == phase and have_finished(phase):
        self.phase = following

  def stop(self) -> bool:
    """Ends the run at once; returns whether it went on until then."""
    if not self.is_going_on:
      return False
    self.phase = reports.STOPPING
    return True

  def stop_early(self, reason: str) -> bool:
    """Ends acting, if it has not ended; returns whether it does."""
    if not self.has_steps_to_take:
      return False
    self.stopped_early = reason
    return True

  def fail(self, failure: failures.Failure) -> bool:
    """Ends the run because of a failure; returns whether it is the first."""
    self.stop()
    if self.failure is not None:
      return False
    self.failure = failure
    return True

  def describe_end(self, why_stopped: str) -> tuple[str, str]:
    """Returns outcome and reason of the end, as `hooks.End` has them.

    Args:
      why_stopped: The reason if it was stopped from outside.
    """
    if self.failure is not None:
      return hooks.FAILED, self.failure.summary
    if self.phase == reports.STOPPING:
      return hooks.INTERRUPTED, why_stopped
    if self.stopped_early:
      return hooks.STOPPED_EARLY, self.stopped_early
    return hooks.DONE, ''
