"""Node graphs: the nodes of a run and their calls; needs no TensorFlow.

Independent of the launcher.
"""

import collections
import dataclasses
import functools
import itertools
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from repertory.launch.coordination import kinds
from repertory.launch.launchers import rpc as rpc_lib
from repertory.launch.nodes import node as node_lib


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
  def max_waiting_calls(self) -> int:
    """Maximum concurrent calls to a node: two of each, one a heartbeat."""
    return 2 * len(self._nodes) + 16

  @property
  def rpc(self) -> rpc_lib.Rpc:
    """Clients and servers of the nodes, once all nodes are added."""
    return rpc_lib.Rpc(
      rpc_lib.chosen(),
      self.token,
      self.call_timeout_seconds,
      self.max_waiting_calls,
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
    for name in node.names:
      if name in taken:
        raise ValueError(f'node names must differ, got {name!r} twice.')
      kinds.kind_of(name)
    for one in node.beside:
      if one.kind.phase is not None:
        raise ValueError(
          f'nodes beside {node.name!r} must have no part in a phase, since '
          f'their completion is not reported; got {one.name!r}.'
        )
    for caller in (node, *node.beside):
      for name in caller.calls:
        if name not in self._nodes or not self._nodes[name].kind.serves:
          raise ValueError(
            f'calls of {caller.name!r} must go to nodes that serve and were '
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
    """Adds a node whose factory also gets `arguments`; returns its name."""
    make = functools.partial(make, **arguments)
    return self.add(PlannedNode(name, make, calls, beside))

  def callees_of(self, name: str) -> list[str]:
    """Returns the callees of a node and its colocated nodes, sorted."""
    plan = self._nodes[name]
    return sorted({c for one in (plan, *plan.beside) for c in one.calls})

  @property
  def served(self) -> list[str]:
    """Names of the serving nodes, which run until they are shut down."""
    return [node.name for node in self if node.kind.serves]

  @property
  def labels(self) -> dict[str, str]:
    """Paths of output files, <kind>/<index among its kind>, by name."""
    counts = collections.defaultdict(itertools.count)
    return {
      node.name: f'{node.kind.name}/{next(counts[node.kind.name])}'
      for node in self
    }

  def owner_of(self, name: str) -> str:
    """Returns the node that owns the thread or process of a node."""
    for node in self:
      if name in node.names:
        return node.name
    raise KeyError(f'node must be one of {self.names}, got {name!r}.')
