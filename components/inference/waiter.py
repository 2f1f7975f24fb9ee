"""Waits for what a lane needs, beside the server's loop."""

import collections
import contextlib
import threading
import time
from collections.abc import Callable

from repertory.components import signals
from repertory.components.inference import lanes

_SLICE_SECONDS = 0.2


class Waiter:
  """One thread, in which one lane after the other gets what it waits for.

  Meanwhile a lane is not read: so its actor is held back, and the server goes
  on for all others.
  """

  def __init__(self, notify: Callable[[], None]):
    """Starts the thread.

    Args:
      notify: Called in the thread when a wait has ended.
    """
    self._notify = notify
    # Of each a lane, what to call for it, and whether that must happen.
    self._jobs: collections.deque[
      tuple[lanes.Lane, Callable[[], None], bool]
    ] = collections.deque()
    self._wanted = threading.Event()
    self._closed = False
    self._busy_since = 0.0
    self._seconds = 0.0
    self.error: BaseException | None = None
    self._thread = threading.Thread(
      target=self._run, name='inference_waiter', daemon=True
    )
    self._thread.start()

  def submit(
    self, lane: lanes.Lane, wait: Callable[[], None], *, closes: bool = False
  ) -> None:
    """Puts a lane in line.

    Args:
      wait: Comes back when the lane can go on.
      closes: Whether it is called for a lane that has ended, too, and at the
        latest by `close`.
    """
    lane.submitted += 1
    self._jobs.append((lane, wait, closes))
    self._wanted.set()

  def seconds(self) -> float:
    """Returns how long was waited, in all."""
    since = self._busy_since
    return self._seconds + (time.monotonic() - since if since else 0.0)

  def close(self, timeout_seconds: float = 5.0) -> None:
    """Ends the thread, after the wait in hand."""
    self._closed = True
    self._wanted.set()
    self._thread.join(timeout_seconds)
    for _, wait, closes in self._jobs:
      if closes:
        with contextlib.suppress(Exception):  # The server has ended.
          wait()

  def _run(self) -> None:
    while not self._closed:
      self._wanted.wait(_SLICE_SECONDS)
      self._wanted.clear()
      while self._jobs and not self._closed:
        lane, wait, closes = self._jobs.popleft()
        self._busy_since = time.monotonic()
        try:
          if closes or not lane.is_closed:
            wait()
        except signals.Stopped:
          self._closed = True
        except BaseException as error:  # Raised in the server's thread.
          self.error = error
          self._closed = True
        self._seconds += time.monotonic() - self._busy_since
        self._busy_since = 0.0
        lane.completed += 1
        self._notify()
