"""Lets the nodes of a process make their networks one after the other.

TensorFlow's random numbers are the process's: who sets their seed and draws
initial values must not be disturbed.
"""

import contextlib
import threading
from collections.abc import Iterator

from repertory.components import signals
from repertory.launch.coordination import reports
from repertory.launch.nodes import node

_LOOK_SECONDS = 0.2

_lock = threading.RLock()


@contextlib.contextmanager
def alone(context: node.Context) -> Iterator[None]:
  """Waits until nobody else makes a network, and keeps others waiting.

  The coordinator hears meanwhile that the node waits. There is no time-out: if
  somebody hangs, it is who makes a network, and the coordinator sees that. Who
  is alone already stays alone.

  Args:
    context: The node's.

  Raises:
    signals.Stopped: If the run stops before, or the stop signal was set.
  """
  while not _lock.acquire(timeout=_LOOK_SECONDS):
    if context.coordinator.poll(context.name).phase == reports.STOPPING:
      raise signals.Stopped
    context.stop.check()
  try:
    yield
  finally:
    _lock.release()
