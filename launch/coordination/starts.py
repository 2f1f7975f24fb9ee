"""Waits for other nodes to start; needs no TensorFlow."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from repertory.components import signals
from repertory.launch.coordination import reports
from repertory.launch.host import watchdog

T = TypeVar('T')

_LOOK_SECONDS = 0.1

# A start is given so long, whatever the experiment says.
_LEAST_SECONDS = watchdog.START_SECONDS


def wait_for(
  look: Callable[[], T | None],
  what: str,
  *,
  coordinator: Any,
  asks: str,
  timeout_seconds: float,
  stop: signals.StopSignal,
) -> T:
  """Waits until there is what another node makes when it starts.

  Args:
    look: Returns it; None as long as it is not there.
    what: What it is, for the error: "node 'learner' to start".
    coordinator: Or its client.
    asks: Name of who waits, which reports with that.
    timeout_seconds: For the start of the other node, if that is more than the
      least.
    stop: Ends the wait.

  Raises:
    signals.Stopped: If the run stops before, or the stop signal was set.
    TimeoutError: If it was not there in time.
  """
  timeout_seconds = max(timeout_seconds, _LEAST_SECONDS)
  deadline = time.monotonic() + timeout_seconds
  while True:
    found = look()
    if found is not None:
      return found
    if coordinator.poll(asks).phase == reports.STOPPING:
      raise signals.Stopped
    if time.monotonic() > deadline:
      raise TimeoutError(f'Waited {timeout_seconds:g} seconds for {what}.')
    if stop.wait(_LOOK_SECONDS):
      raise signals.Stopped
