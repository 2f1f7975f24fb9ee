"""Stop signals and waits with a time-out."""

import math
import threading
import time
from collections.abc import Callable

# Interval at which waits check the stop signal, in seconds.
_SLICE_SECONDS = 0.2


class Stopped(Exception):
  """Ends a wait because the program is stopping; not an error."""


class NoAnswerError(Exception):
  """A peer did not answer in time.

  Not a `TimeoutError`, which is an `OSError` that a disk or a network may
  raise.
  """


class StopSignal(threading.Event):
  """A request to stop, shared by all waiting threads."""

  def check(self) -> None:
    """Raises `Stopped` if a stop was requested."""
    if self.is_set():
      raise Stopped


class LateSignal(StopSignal):
  """A stop signal that follows another one after a delay.

  It leaves time to finish work after the first signal. Code that is done
  earlier sets this signal itself.
  """

  def __init__(
    self,
    first: StopSignal,
    seconds: float,
    is_worth_it: Callable[[], bool] = lambda: True,
  ):
    """Creates a signal that follows another, `seconds` after that is seen.

    `is_worth_it` is called once at that time; if false, there is no delay.
    """
    super().__init__()
    self._first = first
    self._seconds = seconds
    self._is_worth_it = is_worth_it
    self._seen_at: float | None = None

  def is_set(self) -> bool:
    if not super().is_set() and self._first.is_set():
      if self._seen_at is None:
        self._seen_at = time.monotonic()
        if not self._is_worth_it():
          self.set()
      if time.monotonic() - self._seen_at >= self._seconds:
        self.set()
    return super().is_set()

  def wait(self, timeout: float | None = None) -> bool:
    deadline = time.monotonic() + (math.inf if timeout is None else timeout)
    while not self.is_set():
      left = deadline - time.monotonic()
      if left <= 0:
        return False
      super().wait(min(left, _SLICE_SECONDS))
    return True


def wait_for(
  attempt: Callable[[float], bool],
  waiting_for: Callable[[], str],
  timeout_seconds: float,
  stop: StopSignal,
) -> None:
  """Repeats short waits until success, the stop signal or the time-out.

  Args:
    attempt: Waits at most the given seconds; returns whether it succeeded.
    waiting_for: Returns the object of the wait, for the error.
    timeout_seconds: Time limit of the whole wait.
    stop: Ends the wait when set.

  Raises:
    Stopped: If the stop signal was set.
    TimeoutError: If no attempt succeeded in time.
  """
  start = time.monotonic()
  while not attempt(_SLICE_SECONDS):
    stop.check()
    if time.monotonic() - start > timeout_seconds:
      raise TimeoutError(
        f'Waited {timeout_seconds:g} seconds for {waiting_for()}.'
      )
