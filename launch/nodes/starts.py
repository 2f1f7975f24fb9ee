"""Waiting for other nodes to start; needs no TensorFlow."""

import time
from collections.abc import Callable
from typing import TypeVar

from repertory.components.runtime import signals
from repertory.launch.coordination import reports
from repertory.launch.nodes import node as node_lib
from repertory.launch.platform import watchdog

T = TypeVar('T')


def wait_for(
  context: node_lib.Context,
  name: str,
  look: Callable[[], T | None],
  timeout_seconds: float,
) -> T:
  """Blocks until `look` returns a result of another node's start.

  Each poll is also a heartbeat. Raises `signals.Stopped` if the run stops
  first, else TimeoutError; a start may take `watchdog.START_SECONDS`.
  """
  context.report_start(f'waiting for {name}')
  timeout_seconds = max(timeout_seconds, watchdog.START_SECONDS)
  deadline = time.monotonic() + timeout_seconds
  while (found := look()) is None:
    if context.coordinator.poll(context.name).phase == reports.STOPPING:
      raise signals.Stopped
    if time.monotonic() > deadline:
      raise TimeoutError(
        f"Waited {timeout_seconds:g} seconds for the start of node '{name}'."
      )
    if context.stop.wait(0.1):
      raise signals.Stopped
  return found


def find_address(
  context: node_lib.Context, name: str, timeout_seconds: float
) -> str:
  """Blocks until a node's server listens; returns its address."""
  return wait_for(
    context, name, lambda: context.coordinator.address_of(name), timeout_seconds
  )
