"""Lock under which the nodes of a process make networks and updates.

TensorFlow's random seed is global to the process, so nodes must not set it and
draw initial values at the same time.
"""

import contextlib
import threading
import time
from collections.abc import Iterator

from repertory.launch.nodes import node
from repertory.launch.platform import watchdog

_LOOK_SECONDS = 0.2

_LOCK = threading.RLock()


# Name and start time of its holder; several times, as the lock is reentrant.
_entries: list[tuple[str, float]] = []


@contextlib.contextmanager
def held(context: node.Context, timeout_seconds: float) -> Iterator[None]:
  """Holds the initialization lock of the process.

  While the node waits it sends heartbeats, so that it does not seem to hang.
  The lock is reentrant.

  Args:
    timeout_seconds: Timeout of another node that holds the lock; at least
      `watchdog.START_SECONDS`.

  Raises:
    signals.Stopped: If the stop signal is set during the wait.
    TimeoutError: If another node holds the lock for too long.
  """
  if not _LOCK.acquire(blocking=False):
    _wait(context, timeout_seconds)
  _entries.append((context.name, time.monotonic()))
  try:
    yield
  finally:
    _entries.pop()
    _LOCK.release()


def _wait(context: node.Context, timeout_seconds: float) -> None:
  context.report_start('waiting for other nodes to make their networks')
  timeout_seconds = max(timeout_seconds, watchdog.START_SECONDS)
  while not _LOCK.acquire(timeout=_LOOK_SECONDS):
    context.stop.check()
    context.coordinator.poll(context.name)
    for name, since in _entries[:1]:
      if time.monotonic() - since > timeout_seconds:
        raise TimeoutError(
          f"Waited {timeout_seconds:g} seconds for '{name}' to make a network."
        )
