"""Waits, beside the server's loop, for adders that are ahead of their table."""

import collections
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from repertory.components import signals
from repertory.components.inference import lanes

_SLICE_SECONDS = 0.2


class Waiter:
  """One thread, in which adders wait for the rate limiter, and are closed.

  Meanwhile a lane is not read: so the limiter holds back its actor, and the
  server goes on for all others.
  """

  def __init__(self, notify: Callable[[], None]):
    """Starts the thread.

    Args:
      notify: Called in the thread when a lane's adder is done.
    """
    self._notify = notify
    # Of each a lane, its adder, and whether that is to be closed.
    self._jobs: collections.deque[tuple[lanes.Lane, Any, bool]] = (
      collections.deque()
    )
    self._wanted = threading.Event()
    self._closed = False
    self._busy_since = 0.0
    self._seconds = 0.0
    self.error: BaseException | None = None
    self._thread = threading.Thread(
      target=self._run, name='inference_waiter', daemon=True
    )
    self._thread.start()

  def submit(self, lane: lanes.Lane, adder: Any, *, closes: bool) -> None:
    """Puts a lane's adder in line, to wait or to be closed."""
    lane.submitted += 1
    self._jobs.append((lane, adder, closes))
    self._wanted.set()

  def seconds(self) -> float:
    """Returns how long adders have been waited for, in all."""
    since = self._busy_since
    return self._seconds + (time.monotonic() - since if since else 0.0)

  def close(self, timeout_seconds: float = 5.0) -> None:
    """Ends the thread, after the adder in hand; those to close are closed."""
    self._closed = True
    self._wanted.set()
    self._thread.join(timeout_seconds)
    for _, adder, closes in self._jobs:
      if closes:
        with contextlib.suppress(Exception):  # The server has ended.
          adder.close()

  def _run(self) -> None:
    while not self._closed:
      self._wanted.wait(_SLICE_SECONDS)
      self._wanted.clear()
      while self._jobs and not self._closed:
        lane, adder, closes = self._jobs.popleft()
        self._busy_since = time.monotonic()
        try:
          if closes:
            adder.close()
          elif not lane.is_closed:
            adder.wait()
        except signals.Stopped:
          self._closed = True
        except BaseException as error:  # Raised in the server's thread.
          self.error = error
          self._closed = True
        self._seconds += time.monotonic() - self._busy_since
        self._busy_since = 0.0
        lane.completed += 1
        self._notify()
