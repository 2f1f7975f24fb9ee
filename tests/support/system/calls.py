"""Calls in threads, and waits with a deadline."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any


class Call:
  """Calls a function in a thread, so that a test can limit its time."""

  def __init__(self, function: Callable, *args: Any, **kwargs: Any):
    """Starts the call."""
    self._returned: Any = None
    self._error: BaseException | None = None
    self._thread = threading.Thread(
      target=self._run, args=(function, args, kwargs), daemon=True
    )
    self._thread.start()

  def is_waiting(self, seconds: float) -> bool:
    """Returns whether the call is still running after `seconds`."""
    self._thread.join(seconds)
    return self._thread.is_alive()

  def result(self, seconds: float) -> Any:
    """Returns or raises the function's result; fails if it is still running."""
    assert not self.is_waiting(seconds), f'Still running after {seconds:g} s.'
    if self._error is not None:
      raise self._error
    return self._returned

  def _run(self, function: Callable, args: tuple, kwargs: dict) -> None:
    try:
      self._returned = function(*args, **kwargs)
    except BaseException as error:  # Raised by `result`.
      self._error = error


def wait_until(condition: Callable[[], Any], what: str, seconds: float) -> None:
  """Polls a condition; fails after `seconds` with a description of the wait."""
  deadline = time.monotonic() + seconds
  while not condition():
    assert time.monotonic() < deadline, f'Waited {seconds:g} s for {what}.'
    time.sleep(0.02)


@contextlib.contextmanager
def no_threads_left(seconds: float) -> Iterator[None]:
  """Fails if a thread that was started inside is still running afterwards."""
  before = set(threading.enumerate())
  yield
  wait_until(
    lambda: set(threading.enumerate()) <= before,
    f'the end of {set(threading.enumerate()) - before}',
    seconds,
  )
