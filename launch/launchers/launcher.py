"""Launchers and the node graphs they launch: interfaces and registry.

Needs no TensorFlow.
"""

import abc
import collections
import contextlib
import dataclasses
import functools
import itertools
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

from absl import logging

from repertory.launch import failures
from repertory.launch.coordination import kinds
from repertory.launch.experiments import registries
from repertory.launch.launchers import rpc as rpc_lib
from repertory.launch.nodes import node as node_lib

# Time-out of nodes after they were asked to end; and after a second Ctrl-C.
_EXIT_SECONDS = 5.0
HURRIED_SECONDS = 0.5

_POLL_SECONDS = 0.1
_LOG_LINES = 20
# Messages of TensorFlow and Courier for information, and a harmless one.
_NOISE = re.compile(
  r'WARNING: All log messages before absl::InitializeLog\(\)|I\d{4} '
  r'|\d{4}-\d\d-\d\d [\d:.]+: I |To enable them in other operations, rebuild '
  r'|.*\] SetPriority unimplemented for this stream'
)


@dataclasses.dataclass(frozen=True)
class PlannedNode:
  """Specification of a node.

  Attributes:
    name: '<kind>' or '<kind>/<index>', see `kinds`.
    make: Factory of the node from its `node.Context`, called in the thread or
      process where it will run. Must be picklable, unless the topology only
      supports the launcher of threads.
    calls: Names of the nodes that it calls.
    beside: Colocated nodes in the same thread or process, made after this one
      and ended with it. A failure of one ends the run.
  """

  name: str
  make: Callable[[node_lib.Context], node_lib.Node]
  calls: Sequence[str] = ()
  beside: 'Sequence[PlannedNode]' = ()

  @property
  def kind(self) -> kinds.Kind:
    return kinds.kind_of(self.name)

  @property
  def names(self) -> list[str]:
    """Its name, and those of its colocated nodes."""
    return [self.name, *(one.name for one in self.beside)]


class NodeGraph:
  """Node graph of a run.

  Callees must be added before their callers, so that calls have no cycles.

  Attributes:
    call_timeout_seconds: Time-out of calls between nodes.
    token: Secret shared by the nodes.
  """

  def __init__(self, call_timeout_seconds: float):
    """Makes an empty graph; a first call may include its callee's start."""
    self.call_timeout_seconds = call_timeout_seconds
    self.token = secrets.token_hex(16)
    self._nodes: dict[str, PlannedNode] = {}

  @property
  def names(self) -> list[str]:
    """Names of all nodes, in the order of their addition."""
    return list(self._nodes)

  @property
  def rpc(self) -> rpc_lib.Rpc:
    """Clients and servers of the nodes, once all nodes are added."""
    return rpc_lib.Rpc(
      rpc_lib.chosen(),
      self.token,
      self.call_timeout_seconds,
      2 * len(self._nodes) + 16,  # Two of each node, one a heartbeat.
    )

  def __iter__(self) -> Iterator[PlannedNode]:
    return iter(self._nodes.values())

  def __getitem__(self, name: str) -> PlannedNode:
    return self._nodes[name]

  def add(self, node: PlannedNode) -> str:
    """Adds a node; returns its name.

    Raises:
      ValueError: If the name is taken, it calls an unknown node or one that
        does not serve, or a colocated node takes part in a phase.
    """
    taken = [name for one in self for name in one.names]
    for one in (node, *node.beside):
      if one.name in taken:
        raise ValueError(f'node names must differ, got {one.name!r} twice.')
      if one.kind.phase is not None and one is not node:
        raise ValueError(
          f'nodes beside {node.name!r} must have no part in a phase, since '
          f'their completion is not reported; got {one.name!r}.'
        )
      for name in one.calls:
        if name not in self._nodes or not self._nodes[name].kind.serves:
          raise ValueError(
            f'calls of {one.name!r} must go to nodes that serve and were '
            f'added before, {self.served}; got {name!r}.'
          )
    self._nodes[node.name] = node
    return node.name

  def plan(
    self,
    name: str,
    make: Callable[..., node_lib.Node],
    calls: Sequence[str] = (),
    beside: Sequence[PlannedNode] = (),
    **arguments: Any,
  ) -> str:
    """Adds a node whose factory also gets `arguments`; returns its name.

    It also calls the coordinator, if the graph has one.
    """
    make = functools.partial(make, **arguments)
    coordinator = {kinds.COORDINATOR.name} & self._nodes.keys()
    return self.add(PlannedNode(name, make, [*calls, *coordinator], beside))

  def callees_of(self, name: str) -> list[str]:
    """Returns the callees of a node and its colocated nodes, sorted."""
    plan = self._nodes[name]
    return sorted({c for one in (plan, *plan.beside) for c in one.calls})

  @property
  def served(self) -> list[str]:
    """Names of the serving nodes, which run until they are shut down."""
    return [node.name for node in self if node.kind.serves]

  def owner_of(self, name: str) -> str:
    """Returns the node that owns the thread or process of a node."""
    return next(node.name for node in self if name in node.names)


class Workers(abc.ABC):
  """Launched nodes of a node graph, by name.

  Attributes:
    program: The node graph.
    is_forced: Whether waits for ending nodes are short, after a second Ctrl-C.
  """

  is_forced = False

  def __init__(
    self,
    program: NodeGraph,
    addresses: Mapping[str, str | None],
    log_directory: str,
  ):
    """Takes the addresses of serving nodes, by name, if known.

    Output of processes is in files <kind>/<index among its kind>.
    """
    self.program = program
    self._addresses = addresses
    counts: Any = collections.defaultdict(itertools.count)
    self._paths = {
      node.name: os.path.join(
        log_directory, node.kind.name, str(next(counts[node.kind]))
      )
      for node in program
    }

  @property
  def names(self) -> list[str]:
    """Names of all nodes with their own thread or process."""
    return self.program.names

  def find_ended(self) -> list[str]:
    """Returns the nodes that have ended, services first."""
    ended = [name for name in self.names if not self.is_alive(name)]
    return sorted(ended, key=lambda name: not self.program[name].kind.serves)

  def clients_alive(self) -> list[str]:
    """Returns the running nodes that are not services."""
    return [
      name
      for name in self.names
      if not self.program[name].kind.serves and self.is_alive(name)
    ]

  def imminent_failure(self) -> failures.Failure | None:
    """Returns an imminent failure of running nodes, or None."""
    return None

  def address_of(self, name: str) -> str | None:
    """Returns the address of a node's server; None while unknown."""
    return self._addresses.get(name)

  def kill_all(self, names: Collection[str]) -> None:
    """Kills nodes that have not ended; has no effect on threads."""
    for name in filter(self.is_alive, names):
      self.kill(name)

  def waiting(self) -> str:
    """Describes what starting nodes are waiting for; '' if nothing."""
    return ''

  def client(self, name: str) -> Any:
    """Makes a client of a serving node with a known address."""
    return self.program.rpc.make_client(cast(str, self.address_of(name)))

  @property
  def exit_seconds(self) -> float:
    """Time-out of nodes after they were asked to end."""
    return HURRIED_SECONDS if self.is_forced else _EXIT_SECONDS

  def wait_for_end(self, seconds: float) -> None:
    """Waits until all nodes have ended, or for `seconds`."""
    deadline = time.monotonic() + seconds
    while any(map(self.is_alive, self.names)) and time.monotonic() < deadline:
      time.sleep(_POLL_SECONDS)

  def end(self) -> None:
    """Waits for nodes to end, then kills them; warns of those still alive."""
    self.wait_for_end(self.exit_seconds)
    self.kill_all(self.names)
    for name in self.names:
      if self.is_alive(name):
        logging.warning('%s did not end.', name)

  @abc.abstractmethod
  def is_alive(self, name: str) -> bool:
    """Returns whether a node has not ended."""

  @abc.abstractmethod
  def failure_of(self, name: str) -> failures.Failure:
    """Describes how a node ended; `is_lost` if it was killed."""

  def kill(self, name: str) -> str | None:
    """Kills a hanging node, with all nodes in its process.

    Returns the name of the node that owns the killed process; None if the node
    cannot be killed.
    """
    del name

  def restart(self, name: str) -> None:
    """Restarts a node that has ended, if the launcher has `can_restart`."""
    raise NotImplementedError(f'{name} cannot be restarted.')

  def log_of(self, name: str) -> str:
    """Returns the last lines of a node's output and their file; or ''."""
    if name not in self._paths:  # It is beside another.
      return ''
    self._fetch(name)
    path = self._paths[name]
    with contextlib.suppress(OSError), open(path, errors='replace') as file:
      relevant = (line for line in file if not _NOISE.match(line))
      lines = ''.join(collections.deque(relevant, _LOG_LINES))
      return f'\nEnd of {path}:\n{lines}' if lines.strip() else ''
    return ''

  def stacks(self, names: Sequence[str]) -> Mapping[str, str]:
    """Returns stack traces of the threads of nodes, by node.

    Args:
      names: Names of registered nodes; the signal would kill others.
    """
    asked = {}
    for name in names:
      if name in self._paths and self.is_alive(name):
        self._fetch(name)
        path = self._paths[name]
        asked[name] = os.path.getsize(path) if os.path.exists(path) else 0
        self._ask_for_stacks(name)
    time.sleep(1.0)  # Time for processes to print them.
    self._fetch(*asked)
    found = {}
    for name, start in asked.items():
      path = self._paths[name]  # It may have been deleted.
      with contextlib.suppress(OSError), open(path, errors='replace') as file:
        file.seek(start)
        found[name] = file.read()
    return found

  def _fetch(self, *names: str) -> None:  # noqa: B027
    """Fetches all output of nodes to their files."""

  def _ask_for_stacks(self, name: str) -> None:
    """Makes a process print the stacks of its threads."""
    raise NotImplementedError(f'{name} has no process.')


@dataclasses.dataclass(frozen=True)
class Launcher(abc.ABC):
  """Launcher of node graphs.

  A subclass may be a frozen dataclass of settings, each a `settings.field`,
  which become flags.

  Attributes:
    name: Value of `--lp_launch_type`.
    title: Name in the display.
    help: Description of what nodes run in, for the help of the flag.
    can_restart: Whether nodes can be killed and restarted.
    needs_pickles: Whether nodes run in other processes, so that their
      arguments must be picklable.
    rank: Position in listings, simplest first.
  """

  name: ClassVar[str]
  title: ClassVar[str]
  help: ClassVar[str]
  can_restart: ClassVar[bool] = False
  needs_pickles: ClassVar[bool] = True
  rank: ClassVar[int] = 99

  @property
  def spans_hosts(self) -> bool:
    """Whether nodes may run on several hosts."""
    return False

  def prepare(self) -> None:  # noqa: B027
    """Begins with imports of a launch that is likely to follow."""

  @abc.abstractmethod
  def launch(
    self, program: NodeGraph, log_directory: str
  ) -> contextlib.AbstractContextManager[Workers]:
    """Launches a node graph; ends all its nodes when the block ends.

    Threads that do not end cannot be killed; they cause a warning.

    Args:
      program: The node graph.
      log_directory: Folder for the output of nodes.
    """

  def check(self) -> None:
    """Raises ValueError if the launcher cannot be used in this process."""
    rpc_lib.chosen()


_REGISTRY: registries.Registry[type[Launcher]] = registries.Registry(
  'repertory.launch.launchers', 'launch_type', suffix='_launcher'
)
# `register` is a decorator of launchers. In this folder, names of files with
# launchers end with `_launcher`.
register, get = _REGISTRY.add, _REGISTRY.get


def launchers() -> Mapping[str, type[Launcher]]:
  """Returns all launchers by name."""
  return _REGISTRY.entries
