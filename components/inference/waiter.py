"""Background thread for the blocking waits of lanes."""

import collections
import contextlib
import threading
import time
from collections.abc import Callable

from repertory.components.inference import connections
from repertory.components.runtime import signals

_SLICE_SECONDS = 0.2


class Waiter:
  """A thread that processes the blocking waits of lanes, one by one.

  Meanwhile the lane is not read, which blocks its actor, while the server
  continues for all others.
  """

  def __init__(self, notify: Callable[[], None]):
    """Starts the thread.

    Args:
      notify: Called in the thread when a wait has ended.
    """
    self._notify = notify
    # Each with its lane, function to call, and whether the call is mandatory.
    self._jobs: collections.deque[
      tuple[connections.ActorConnection, Callable[[], None], bool]
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
    self,
    connection: connections.ActorConnection,
    wait: Callable[[], None],
    *,
    closes: bool = False,
  ) -> None:
    """Queues a wait for a lane.

    Args:
      wait: Returns when the lane can continue.
      closes: Whether it must be called even if the lane has ended, at the
        latest by `close`.
    """
    connection.submitted += 1
    self._jobs.append((connection, wait, closes))
    self._wanted.set()

  def seconds(self) -> float:
    """Returns the total time spent waiting."""
    since = self._busy_since
    return self._seconds + (time.monotonic() - since if since else 0.0)

  def close(self, timeout_seconds: float = 5.0) -> None:
    """Ends the thread, after the current wait."""
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
        connection, wait, closes = self._jobs.popleft()
        self._busy_since = time.monotonic()
        try:
          if closes or not connection.is_closed:
            wait()
        except signals.Stopped:
          self._closed = True
        except BaseException as error:  # Raised in the server's thread.
          self.error = error
          self._closed = True
        self._seconds += time.monotonic() - self._busy_since
        self._busy_since = 0.0
        connection.completed += 1
        self._notify()
