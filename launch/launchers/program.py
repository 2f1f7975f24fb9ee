"""Which nodes a run has, and who calls whom; needs no TensorFlow.

Nothing here knows how nodes are launched.
"""

import collections
import dataclasses
import secrets
from collections.abc import Callable, Iterator, Sequence

from repertory.launch.coordination import kinds
from repertory.launch.nodes import node as node_lib


@dataclasses.dataclass(frozen=True)
class PlannedNode:
  """A node that is to be made.

  Attributes:
    name: '<kind>' or '<kind>/<index>', see `kinds`.
    make: Makes it from its `node.Context`, in the thread or process where it
      will run; so it must be picklable, unless its topology allows no launcher
      but that of threads.
    calls: Names of the nodes that it calls.
    beside: Nodes in the same thread or process, made after it and ended with
      it; one that fails ends the run.
  """

  name: str
  make: Callable[[node_lib.Context], node_lib.Node]
  calls: Sequence[str] = ()
  beside: 'Sequence[PlannedNode]' = ()

  @property
  def kind(self) -> kinds.Kind:
    return kinds.kind_of(self.name)


class Program:
  """The nodes of a run.

  Who is called must have been added before, or calls would go in circles.

  Attributes:
    call_timeout_seconds: How long a call between nodes may take.
    token: What its nodes know, and nobody else.
  """

  def __init__(self, call_timeout_seconds: float):
    """Has no nodes yet.

    Args:
      call_timeout_seconds: How long a call between nodes may take; the first
        one may include the start of the node that is called.
    """
    self.call_timeout_seconds = call_timeout_seconds
    self.token = secrets.token_hex(16)
    self._nodes: dict[str, PlannedNode] = {}

  @property
  def names(self) -> list[str]:
    """Names all nodes, in the order in which they were added."""
    return list(self._nodes)

  @property
  def max_waiting_calls(self) -> int:
    """Calls that may wait at a node at the same time.

    Every other node may wait in two, its own and its report's.
    """
    return 2 * len(self._nodes) + 16

  def __iter__(self) -> Iterator[PlannedNode]:
    return iter(self._nodes.values())

  def __getitem__(self, name: str) -> PlannedNode:
    return self._nodes[name]

  def add(self, node: PlannedNode) -> str:
    """Adds a node; returns its name.

    Raises:
      ValueError: If there is one of that name, or it calls a node that there is
        not, or that nobody can call; or one beside it has a part in a phase.
    """
    taken = [name for one in self for name in (one.name, *_names_beside(one))]
    for name in (node.name, *_names_beside(node)):
      if name in taken:
        raise ValueError(
          f'node names must differ, got {name!r} for a second one.'
        )
      kinds.kind_of(name)
    for one in node.beside:
      if one.kind.phase is not None:
        raise ValueError(
          f'nodes beside {node.name!r} must have no part in a phase, for it is '
          f'not told when they are done; got {one.name!r}.'
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

  def callees_of(self, name: str) -> list[str]:
    """Returns the nodes that one calls, or that one beside it does, sorted."""
    plan = self._nodes[name]
    return sorted({c for one in (plan, *plan.beside) for c in one.calls})

  @property
  def served(self) -> list[str]:
    """Names of the nodes that serve until they are shut down."""
    return [node.name for node in self if node.kind.serves]

  @property
  def savers(self) -> list[PlannedNode]:
    """The nodes that save what there is when the run ends."""
    return [node for node in self if node.kind.saves]

  @property
  def labels(self) -> dict[str, str]:
    """The files to which nodes print, by name.

    That is <kind>/<place>, a place being the node's among those of its kind.
    """
    places: collections.Counter = collections.Counter()
    found = {}
    for node in self:
      kind = node.kind.name
      found[node.name] = f'{kind}/{places[kind]}'
      places[kind] += 1
    return found

  def owner_of(self, name: str) -> str:
    """Returns the node in whose thread or process a node is."""
    for node in self:
      if name in (node.name, *_names_beside(node)):
        return node.name
    raise KeyError(f'There is no node {name!r}; there are {self.names}.')


def _names_beside(node: PlannedNode) -> list[str]:
  return [other.name for other in node.beside]
