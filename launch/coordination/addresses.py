"""Where nodes listen, as the coordinator knows it; needs no TensorFlow."""

import time
from typing import Any

from repertory.components import signals
from repertory.launch.coordination import reports
from repertory.launch.host import watchdog

_LOOK_SECONDS = 0.1


def find(
  coordinator: Any,
  node: str,
  *,
  asks: str,
  timeout_seconds: float,
  stop: signals.StopSignal,
) -> str:
  """Waits until a node listens; returns where.

  Args:
    coordinator: Or its client.
    node: Name of who is looked for, perhaps while it is being started.
    asks: Name of who looks for it, which reports with that.
    timeout_seconds: For the start of the node, if that is more than the least.
    stop: Ends the wait.

  Raises:
    signals.Stopped: If the run stops before, or the stop signal was set.
    TimeoutError: If it did not start in time.
  """
  timeout_seconds = max(timeout_seconds, watchdog.START_SECONDS)
  deadline = time.monotonic() + timeout_seconds
  while True:
    address = coordinator.address_of(node)
    if address is not None:
      return address
    if coordinator.poll(asks).phase == reports.STOPPING:
      raise signals.Stopped
    if time.monotonic() > deadline:
      raise TimeoutError(
        f"Waited {timeout_seconds:g} seconds for node '{node}' to listen."
      )
    if stop.wait(_LOOK_SECONDS):
      raise signals.Stopped
