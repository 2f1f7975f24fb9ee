"""Lets the nodes of a process make networks and updates one after the other.

TensorFlow's random numbers are the process's: who sets their seed and draws
initial values must not be disturbed.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from repertory.launch.host import watchdog
from repertory.launch.nodes import node

_LOOK_SECONDS = 0.2

_LOCK = threading.RLock()


class _Entry(NamedTuple):
  """Who came to be alone, and when."""

  name: str
  time: float


_entries: list[_Entry] = []  # Of one node; it may be alone within being alone.


@contextlib.contextmanager
def alone(context: node.Context, timeout_seconds: float) -> Iterator[None]:
  """Waits until nobody else makes a network, and keeps others waiting.

  The coordinator hears that the node waits, so that it does not seem to hang. A
  node may call this again while it is alone.

  Args:
    context: The node's.
    timeout_seconds: For another node, if that is more than the least, as in
      `starts.wait_for`.

  Raises:
    signals.Stopped: If the stop signal was set before it was the node's turn.
    TimeoutError: If another node took too long.
  """
  if not _LOCK.acquire(blocking=False):
    _wait(context, timeout_seconds)
  _entries.append(_Entry(context.name, time.monotonic()))
  try:
    yield
  finally:
    _entries.pop()
    _LOCK.release()


def _wait(context: node.Context, timeout_seconds: float) -> None:
  context.tell_start('waiting for others to make their networks')
  timeout_seconds = max(timeout_seconds, watchdog.START_SECONDS)
  while not _LOCK.acquire(timeout=_LOOK_SECONDS):
    context.stop.check()
    context.coordinator.poll(context.name)
    for name, since in _entries[:1]:
      if time.monotonic() - since > timeout_seconds:
        raise TimeoutError(
          f"Waited {timeout_seconds:g} seconds for '{name}' to make a network."
        )
