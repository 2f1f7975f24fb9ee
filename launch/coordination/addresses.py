"""Where nodes listen, as the coordinator knows it; needs no TensorFlow."""

from typing import Any

from repertory.components import signals
from repertory.launch.coordination import starts


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
  return starts.wait_for(
    lambda: coordinator.address_of(node),
    f"node '{node}' to listen",
    coordinator=coordinator,
    asks=asks,
    timeout_seconds=timeout_seconds,
    stop=stop,
  )
