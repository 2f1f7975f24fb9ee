"""Waiting for other nodes to start; needs no TensorFlow."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from repertory.components.runtime import signals
from repertory.launch.coordination import reports
from repertory.launch.platform import watchdog

T = TypeVar('T')


def wait_for(
  look: Callable[[], T | None],
  what: str,
  *,
  coordinator: Any,
  asks: str,
  timeout_seconds: float,
  stop: signals.StopSignal,
) -> T:
  """Blocks until `look` returns a result of another node's start.

  Each poll is also a heartbeat of the node that `asks`. Raises
  `signals.Stopped` if the run stops first, else TimeoutError.
  """
  timeout_seconds = max(timeout_seconds, watchdog.START_SECONDS)
  deadline = time.monotonic() + timeout_seconds
  while True:
    found = look()
    if found is not None:
      return found
    if coordinator.poll(asks).phase == reports.STOPPING:
      raise signals.Stopped
    if time.monotonic() > deadline:
      raise TimeoutError(f'Waited {timeout_seconds:g} seconds for {what}.')
    if stop.wait(0.1):
      raise signals.Stopped


def find_address(
  coordinator: Any,
  node: str,
  *,
  asks: str,
  timeout_seconds: float,
  stop: signals.StopSignal,
) -> str:
  """Blocks until a node's server listens; see `wait_for`."""
  return wait_for(
    lambda: coordinator.address_of(node),
    f"node '{node}' to listen",
    coordinator=coordinator,
    asks=asks,
    timeout_seconds=timeout_seconds,
    stop=stop,
  )
