"""Node registry: state, heartbeats, progress and restarts of all nodes."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from repertory.components import loggers
from repertory.launch import failures
from repertory.launch.coordination import kinds
from repertory.launch.platform import watchdog

# Time window of a restart budget.
WINDOW_SECONDS = 600.0

_STARTING = ('starting', 'restarting')
_ENDED = ('done', 'failed')


class RestartBudget:
  """Limit on the number of restarts within a time window."""

  def __init__(
    self, max_restarts: int, clock: Callable[[], float] = time.monotonic
  ):
    self._max_restarts = max_restarts
    self._clock = clock
    self._taken_at: list[float] = []

  @property
  def num_taken(self) -> int:
    return len(self._taken_at)

  def is_left(self) -> bool:
    """Returns whether another restart is allowed now."""
    since = self._clock() - WINDOW_SECONDS
    return sum(t >= since for t in self._taken_at) < self._max_restarts

  def take(self) -> None:
    """Counts a restart."""
    self._taken_at.append(self._clock())


@dataclasses.dataclass
class _Node:
  """Entry of the registry; times are of the registry's clock."""

  restarts: RestartBudget
  state: str = 'starting'
  started_at: float = 0.0
  doing: str = ''  # Current step of its start.
  heard_at: float = 0.0
  progress: float = 0.0  # Work done, in the node's own unit.
  progressed_at: float = 0.0
  environment_seconds: float = 0.0  # Of the current environment step.
  is_ready: bool = False  # Whether it has registered.
  address: str | None = None
  failure: failures.Failure | None = None  # Reported by itself.


class NodeRegistry:
  """Registry of all nodes of a run, by name."""

  def __init__(
    self,
    max_restarts: int,
    clock: Callable[[], float] = time.monotonic,
    num_restarts: int = 0,
  ):
    self._num_restarts_before = num_restarts
    self._max_restarts = max_restarts
    self._first_doing = ''
    self._clock = clock
    self._nodes: dict[str, _Node] = {}
    self._expected: set[str] = set()
    # Cached, since every heartbeat asks for it.
    self._starting: set[str] = set()

  def expect(
    self, names: Sequence[str], doing: str = '', seconds: float = 0.0
  ) -> None:
    """Adds nodes whose start began some seconds ago, with an activity."""
    self._first_doing = doing
    for name in names:
      self._hear(name).started_at -= seconds
    self._expected.update(names)

  def report_start(self, name: str, doing: str) -> None:
    """Stores the current step of a node's start."""
    self._hear(name).doing = doing

  def register(self, name: str, address: str | None = None) -> None:
    """Marks a node as running."""
    node = self._hear(name)
    node.is_ready, node.address = True, address
    if node.state not in _ENDED:
      self._enter(name, 'running')
    node.progressed_at = self._clock()

  def hear(
    self,
    name: str,
    progress: float | None = None,
    environment_seconds: float = 0.0,
  ) -> None:
    """Records a heartbeat."""
    node = self._hear(name)
    node.environment_seconds = environment_seconds
    if progress is not None and progress != node.progress:
      node.progress, node.progressed_at = progress, node.heard_at

  def finish(self, name: str, state: str = 'done') -> None:
    """Marks a node as done, or as failed for good."""
    self._hear(name)
    self._enter(name, state)

  def may_restart(self, name: str) -> bool:
    """Returns whether a node that ended can be restarted.

    A node that never registered cannot, since it would fail again; nor can one
    beside another, whose process continues.
    """
    node = self._nodes.get(name)
    return (
      node is not None
      and node.is_ready
      and name in self._expected
      and kinds.kind_of(name).is_replaceable
      and node.restarts.is_left()
    )

  def keep_cause(self, failure: failures.Failure) -> bool:
    """Stores the failure of a node if it may be restarted; returns whether."""
    if failure.is_bad_input or not self.may_restart(failure.node):
      return False
    self._nodes[failure.node].failure = failure
    return True

  def take_cause(self, failure: failures.Failure) -> failures.Failure:
    """Returns the failure the node reported, else the given one."""
    node = self._nodes.get(failure.node)
    if node is None or node.failure is None:
      return failure
    failure, node.failure = node.failure, None
    return failure

  def mark_restarted(self, name: str) -> int:
    """Marks a node as restarting; returns its number of restarts."""
    node = self._hear(name)
    node.restarts.take()
    self._enter(name, 'restarting')
    node.address = None
    node.progressed_at, node.environment_seconds = node.heard_at, 0.0
    return node.restarts.num_taken

  def finished(self) -> list[str]:
    """Returns the names of the nodes that are done or failed."""
    nodes = self._nodes.items()
    return sorted(name for name, node in nodes if node.state in _ENDED)

  def address_of(self, name: str) -> str | None:
    """Returns the address of a node's server; None until it registers."""
    node = self._nodes.get(name)
    return node.address if node else None

  def have_finished(self, phase: str) -> bool:
    """Returns whether all nodes of a phase are done; False before `expect`."""
    return bool(self._expected) and all(
      self._nodes[name].state in _ENDED
      for name in self._expected
      if kinds.kind_of(name).phase == phase
    )

  def have_all_started(self) -> bool:
    """Returns whether no node is starting or restarting."""
    return not self._starting

  def is_acting_delayed(self) -> bool:
    """Returns whether a node that acting may need is starting."""
    return any(kinds.kind_of(name).acts for name in self._starting)

  def figures(self, elapsed_seconds: float) -> dict[str, Any]:
    """Returns the display figures of the nodes."""
    began_at = self._clock() - elapsed_seconds
    nodes = sorted(self._nodes.items())
    taken = sum(node.restarts.num_taken for _, node in nodes)
    return {
      'nodes': tuple((name, node.state) for name, node in nodes),
      'num_restarts': self._num_restarts_before + taken or None,
      'starts': tuple(
        loggers.NodeStart(name, node.doing, node.started_at - began_at)
        for name, node in nodes
        if node.state in _STARTING
      ),
    }

  def find_overdue(
    self, silence_seconds: float, environment_seconds: float
  ) -> dict[str, str]:
    """Describes the problem of each node that hangs, by name."""
    now, overdue = self._clock(), {}
    for name, node in self._nodes.items():
      silence, limit = now - node.heard_at, silence_seconds
      if node.state in _STARTING:
        limit = max(limit, watchdog.START_SECONDS)
      if node.state in _ENDED:
        continue
      if silence > limit:
        overdue[name] = f'It has not reported for {silence:.0f} seconds.'
      elif node.environment_seconds > environment_seconds:
        overdue[name] = (
          'Its environment has been at one step or reset for '
          f'{node.environment_seconds:.0f} seconds.'
        )
    return overdue

  def find_slowest(self) -> str | None:
    """Returns the working node whose latest progress is the oldest."""
    progressed_at = {
      name: node.progressed_at
      for name, node in self._nodes.items()
      if node.is_ready and node.progress and node.state not in _ENDED
    }
    return min(progressed_at, key=progressed_at.__getitem__, default=None)

  def describe(self) -> Mapping[str, str]:
    """Describes the state of each node, for a stall report."""
    now, described = self._clock(), {}
    for name, node in sorted(self._nodes.items()):
      described[name] = (
        f'{node.state}; last progress {now - node.progressed_at:.0f} s ago, '
        f'at {node.progress:.0f}; last heartbeat {now - node.heard_at:.1f} s '
        'ago'
      )
      if node.environment_seconds > 1:
        seconds = node.environment_seconds
        described[name] += f'; in its environment for {seconds:.0f} s'
    return described

  def _hear(self, name: str) -> _Node:
    if name not in self._nodes:
      budget = RestartBudget(self._max_restarts, self._clock)
      self._nodes[name] = _Node(budget)
      self._enter(name, 'starting')
    node = self._nodes[name]
    node.heard_at = self._clock()
    return node

  def _enter(self, name: str, state: str) -> None:
    node = self._nodes[name]
    node.state = state
    if state in _STARTING:
      node.started_at, node.doing = self._clock(), self._first_doing
      self._starting.add(name)
    else:
      self._starting.discard(name)
