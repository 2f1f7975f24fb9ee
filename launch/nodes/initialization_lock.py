"""Lock under which the nodes of a process make networks and updates.

TensorFlow's random seed is global to the process, so nodes must not set it and
draw initial values at the same time.
"""

import contextlib
import threading
from collections.abc import Iterator

from repertory.launch.nodes import node

_LOOK_SECONDS = 0.2

_LOCK = threading.RLock()


@contextlib.contextmanager
def held(context: node.Context) -> Iterator[None]:
  """Holds the initialization lock of the process, which is reentrant.

  While the node waits it sends heartbeats, so that it does not seem to hang;
  the coordinator misses those of a holder that hangs.
  """
  if not _LOCK.acquire(blocking=False):
    context.report_start('waiting for other nodes to make their networks')
    while not _LOCK.acquire(timeout=_LOOK_SECONDS):
      context.stop.check()
      context.coordinator.poll(context.name)
  try:
    yield
  finally:
    _LOCK.release()
