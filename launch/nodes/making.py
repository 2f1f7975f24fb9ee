"""Lets the nodes of a process make their networks one after the other.

TensorFlow's random numbers are the process's: who sets their seed and draws
initial values must not be disturbed.
"""

import contextlib
import threading
from collections.abc import Iterator

from repertory.components import signals

_LOOK_SECONDS = 0.2

_lock = threading.Lock()


@contextlib.contextmanager
def alone(stop: signals.StopSignal) -> Iterator[None]:
  """Waits until nobody else makes a network, and keeps others waiting.

  Args:
    stop: Ends the wait.

  Raises:
    signals.Stopped: If the stop signal was set.
  """
  while not _lock.acquire(timeout=_LOOK_SECONDS):
    stop.check()
  try:
    yield
  finally:
    _lock.release()
