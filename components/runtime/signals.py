"""Stop signals and waits with a time-out."""

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


def delayed(
  first: StopSignal,
  seconds: float,
  is_worth_it: Callable[[], bool] = lambda: True,
) -> StopSignal:
  """Returns a stop signal that follows another one after a delay.

  It leaves time to finish work after the first signal. Code that is done
  earlier sets it itself.

  Args:
    first: The signal to follow.
    seconds: The delay.
    is_worth_it: Called once after the first signal, in another thread; if
      false, there is no delay.
  """
  late = StopSignal()

  def follow() -> None:
    first.wait()
    if is_worth_it():
      late.wait(seconds)
    late.set()

  threading.Thread(target=follow, name='delayed_stop', daemon=True).start()
  return late


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
