"""What every node is, whatever it does and wherever it runs."""

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from repertory.components import callers, interfaces, signals
from repertory.launch.coordination import reports


class Node(abc.ABC):
  """A part of a run that owns its loop.

  One function hosts all of them, in threads and in processes, see
  `launchers.hosting`: it makes the node, tells the coordinator what it runs
  with, runs it while it reports from another thread, and closes it. In `single`
  nodes take turns instead, see `nodes.turns`.

  Attributes:
    name: As the program has it, '<kind>' or '<kind>/<index>'.
  """

  name: str

  @property
  def description(self) -> Mapping[str, Any]:
    """Plain values that tell with what it runs, for `logs/nodes.jsonl`.

    If others are to find it, 'address' says where it listens.
    """
    return {}

  @property
  def served(self) -> Mapping[str, Callable[..., Any]]:
    """What other nodes may call, by name."""
    return {}

  @abc.abstractmethod
  def run(self) -> None:
    """Does its part.

    Raises:
      signals.Stopped: If its stop signal was set before it was done, which is
        no failure.
    """

  @abc.abstractmethod
  def report(self) -> reports.Directive:
    """Tells the coordinator how far it is, and hears what is to be done.

    Called four times a second, in another thread than `run`, and once when
    that has ended.
    """

  @abc.abstractmethod
  def close(self) -> None:
    """Ends what it started; called once, also if it failed."""


@dataclasses.dataclass(frozen=True)
class Context:
  """What a node finds when it is made.

  Attributes:
    name: What it is called.
    coordinator: Or its client; None for the coordinator's own node.
    peers: Clients of the nodes that it may call, by name.
    stop: Set when it is to end: a node that does a part, when the run stops;
      one that is there for others, when it is shut down. Every wait heeds it.
    life: How often it was started before, in this run.
    token: What all nodes of the launch know, and nobody else.
    can_restart: Whether nodes that end too early can be started again.
    is_alone: Whether no other node computes in its process while it does.
    beside: The node in whose thread or process it is; None if it has its own.
    interface: Over what others reach its servers.
    shown: Called when the node has told what it is at while it is made.
  """

  name: str
  coordinator: Any
  peers: Mapping[str, Any]
  stop: signals.StopSignal
  life: int = 0
  token: str = ''
  can_restart: bool = False
  is_alone: bool = False
  beside: Any = None
  interface: interfaces.Interface = interfaces.LOOPBACK
  shown: Callable[[], None] = lambda: None

  def tell_start(self, doing: str) -> None:
    """Tells what the node is at while it is made, for the display.

    Args:
      doing: Such as 'compiling its update'.
    """
    if self.coordinator is not None:
      self.coordinator.tell_start(self.name, doing)
    self.shown()

  @property
  def caller(self) -> callers.Caller:
    """As whom the node calls others."""
    return callers.Caller(self.name, self.life, self.token)
