"""Calls that may wait, and waits with a deadline."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any


class Call:
  """Calls a function in a thread, so that a check can outlive its waiting."""

  def __init__(self, function: Callable, *args: Any, **kwargs: Any):
    """Begins the call."""
    self._returned: Any = None
    self._error: BaseException | None = None
    self._thread = threading.Thread(
      target=self._run, args=(function, args, kwargs), daemon=True
    )
    self._thread.start()

  def is_waiting(self, seconds: float) -> bool:
    """Returns whether the call still goes on after so many seconds."""
    self._thread.join(seconds)
    return self._thread.is_alive()

  def result(self, seconds: float) -> Any:
    """Returns or raises what the function did; fails if it goes on."""
    assert not self.is_waiting(seconds), f'It still waits after {seconds:g} s.'
    if self._error is not None:
      raise self._error
    return self._returned

  def _run(self, function: Callable, args: tuple, kwargs: dict) -> None:
    try:
      self._returned = function(*args, **kwargs)
    except BaseException as error:  # Raised by `result`.
      self._error = error


def wait_until(condition: Callable[[], Any], what: str, seconds: float) -> None:
  """Polls a condition; fails after so many seconds, saying what was awaited."""
  deadline = time.monotonic() + seconds
  while not condition():
    assert time.monotonic() < deadline, f'Waited {seconds:g} s for {what}.'
    time.sleep(0.02)


@contextlib.contextmanager
def no_threads_left(seconds: float) -> Iterator[None]:
  """Fails if a thread that was started inside goes on afterwards."""
  before = set(threading.enumerate())
  yield
  wait_until(
    lambda: set(threading.enumerate()) <= before,
    f'the end of {set(threading.enumerate()) - before}',
    seconds,
  )
