"""Interface of nodes, and the context they are made in."""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from repertory.components.network import callers, network_interfaces
from repertory.components.runtime import signals
from repertory.launch.coordination import reports
from repertory.launch.platform import watchdog

# TensorFlow's random seed is global to the process, so nodes must not set it
# and draw initial values at the same time.
_INITIALIZATION = threading.RLock()
_LOOK_SECONDS = 0.2

T = TypeVar('T')


class Node:
  """Node: a part of a run with its own loop; by default, an idle server.

  `launchers.node_runner` makes a node in a thread or process, registers it with
  the coordinator, runs it, sends heartbeats from another thread, and closes it.
  In `single`, one thread runs all nodes round-robin, see `nodes.one_thread`.

  Attributes:
    name: Name of the node, '<kind>' or '<kind>/<index>'.
  """

  def __init__(self, context: 'Context'):
    """Takes name, coordinator and stop signal of the context."""
    self.name = context.name
    self._coordinator = context.coordinator
    self._stop = context.stop

  @property
  def description(self) -> Mapping[str, Any]:
    """Plain values that describe its setup, for `logs/nodes.jsonl`.

    'address' is the address of its server, if it has one.
    """
    return {}

  @property
  def served(self) -> Mapping[str, Callable[..., Any]]:
    """Functions that other nodes may call, by name."""
    return {}

  def run(self) -> None:
    """Runs the node until it is done; by default, until it is shut down.

    Raises:
      signals.Stopped: If its stop signal was set first, which is no failure.
    """
    while not self._stop.wait(reports.PERIOD_SECONDS):
      pass

  def report(self) -> reports.HeartbeatReply:
    """Sends a heartbeat to the coordinator, and handles the reply.

    Called four times a second, in another thread than `run`, and once after
    `run` has ended.
    """
    return self._coordinator.poll(self.name)


@dataclasses.dataclass(frozen=True)
class Context:
  """Context of a node: its name, clients, signals and network interface.

  Attributes:
    name: Name of the node.
    coordinator: The coordinator or its client; None for its own node.
    peers: Clients of the nodes that it may call, by name.
    stop: Stop signal. It is set when the run stops, or for servers when they
      are shut down. Every wait checks it.
    generation: Generation: number of earlier starts in this run.
    token: Secret shared by all nodes of the launch.
    can_restart: Whether the launcher can restart nodes that end too early.
    is_alone: Whether no other node of its process computes at the same time.
    beside: Node whose thread or process it shares; None without one.
    interface: Network interface of its servers.
    shown: Callback after each message of the node's start.
    closing: Exit stack of what the node opens; closed once, also if it fails.
  """

  name: str
  coordinator: Any
  peers: Mapping[str, Any]
  stop: signals.StopSignal
  generation: int = 0
  token: str = ''
  can_restart: bool = False
  is_alone: bool = False
  beside: Any = None
  interface: network_interfaces.Interface = network_interfaces.LOOPBACK
  shown: Callable[[], None] = lambda: None
  closing: contextlib.ExitStack = dataclasses.field(
    default_factory=contextlib.ExitStack
  )

  def report_start(self, doing: str) -> None:
    """Reports the current step of the node's start, for the display.

    Args:
      doing: Description, such as 'compiling its update'.
    """
    if self.coordinator is not None:
      self.coordinator.report_start(self.name, doing)
    self.shown()

  def wait_for(
    self, name: str, look: Callable[[], T | None], timeout_seconds: float
  ) -> T:
    """Blocks until `look` returns a result of another node's start.

    Each poll is also a heartbeat. Raises `signals.Stopped` if the run stops
    first, else TimeoutError; a start may take `watchdog.START_SECONDS`.
    """
    self.report_start(f'waiting for {name}')
    found: list[T] = []

    def attempt(seconds: float) -> bool:
      if (result := look()) is not None:
        found.append(result)
      elif self.coordinator.poll(self.name).phase == reports.STOPPING:
        raise signals.Stopped
      else:
        self.stop.wait(seconds / 2)
      return bool(found)

    signals.wait_for(
      attempt,
      lambda: f"the start of node '{name}'",
      max(timeout_seconds, watchdog.START_SECONDS),
      self.stop,
    )
    return found[0]

  def find_address(self, name: str, timeout_seconds: float) -> str:
    """Blocks until a node's server listens; returns its address."""
    return self.wait_for(
      name, lambda: self.coordinator.address_of(name), timeout_seconds
    )

  @contextlib.contextmanager
  def initializing(self) -> Iterator[None]:
    """Holds the lock under which nodes of a process make networks; reentrant.

    While the node waits it sends heartbeats, so that it does not seem to hang;
    the coordinator misses those of a holder that hangs.
    """
    if not _INITIALIZATION.acquire(blocking=False):
      self.report_start('waiting for other nodes to make their networks')
      while not _INITIALIZATION.acquire(timeout=_LOOK_SECONDS):
        self.stop.check()
        self.coordinator.poll(self.name)
    try:
      yield
    finally:
      _INITIALIZATION.release()

  @property
  def caller(self) -> callers.Caller:
    """Caller identity of the node."""
    return callers.Caller(self.name, self.generation, self.token)
