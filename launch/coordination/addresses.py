"""Lookup of node addresses at the coordinator. Needs no TensorFlow."""

from typing import Any

from repertory.components.runtime import signals
from repertory.launch.coordination import starts


def find(
  coordinator: Any,
  node: str,
  *,
  asks: str,
  timeout_seconds: float,
  stop: signals.StopSignal,
) -> str:
  """Blocks until a node's server listens; returns its address.

  Args:
    coordinator: The coordinator or its client.
    node: Name of the node, which may still be starting.
    asks: Name of the waiting node; each poll is also its heartbeat.
    timeout_seconds: Timeout of the node's start; at least
      `watchdog.START_SECONDS`.
    stop: Signal that ends the wait.

  Raises:
    signals.Stopped: If the run stops first, or the stop signal is set.
    TimeoutError: If the node does not start in time.
  """
  return starts.wait_for(
    lambda: coordinator.address_of(node),
    f"node '{node}' to listen",
    coordinator=coordinator,
    asks=asks,
    timeout_seconds=timeout_seconds,
    stop=stop,
  )
