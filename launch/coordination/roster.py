"""What is known of the nodes: whether they live, and when they got on."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from repertory.components import loggers
from repertory.launch import failures
from repertory.launch.coordination import kinds, restarts
from repertory.launch.host import watchdog

# No node that is well pauses for so long between two reports.
_PAUSE_SECONDS = 2.0

_STARTING = ('starting', 'restarting')


@dataclasses.dataclass
class _Node:
  """A node.

  Attributes:
    state: For the display.
    started_at: When it was started last.
    doing: What it is at while it starts, as far as it tells.
    heard_at: When it called last.
    progress: How much it has done.
    progressed_at: When that last grew.
    environment_seconds: How long its environments have been at a step.
    restarts: How often it was started again, and may be.
    is_ready: Whether it has registered.
    address: Where it listens, if others are to find it.
    host: On which host it is, if there are several.
  """

  restarts: restarts.RestartBudget
  state: str = 'starting'
  started_at: float = 0.0
  doing: str = ''
  heard_at: float = 0.0
  progress: float = 0.0
  progressed_at: float = 0.0
  environment_seconds: float = 0.0
  is_ready: bool = False
  address: str | None = None
  host: str | None = None


class Roster:
  """All nodes of a run, by name."""

  def __init__(
    self,
    max_restarts: int,
    clock: Callable[[], float] = time.monotonic,
    num_restarts: int = 0,
    keeps_step: bool = False,
  ):
    """Knows nobody yet.

    Args:
      max_restarts: How often one node may be started again within
        `restarts.WINDOW_SECONDS`; 0 where the launcher cannot.
      clock: Tells seconds.
      num_restarts: How often nodes were started again before.
      keeps_step: Whether nobody who acts can be started again by itself: the
        others would wait for what it had sent, or would have sent.
    """
    self._num_restarts_before = num_restarts
    self._keeps_step = keeps_step
    self._max_restarts = max_restarts
    self._first_doing = ''
    self._clock = clock
    self._nodes: dict[str, _Node] = {}
    self._causes: dict[str, failures.Failure] = {}
    self._expected: set[str] = set()
    self._finished: set[str] = set()
    # Asked at every report of every node, so it is not looked for.
    self._starting: set[str] = set()

  def expect(
    self, names: Sequence[str], doing: str = '', seconds: float = 0.0
  ) -> None:
    """Notes which nodes are being started.

    Args:
      doing: What one that starts is at before it tells; '' if that is unknown.
      seconds: How long they have been.
    """
    self._first_doing = doing
    for name in names:
      self._hear(name).started_at -= seconds
    self._expected.update(names)

  def tell_start(self, name: str, doing: str) -> None:
    """Notes what a node is at that starts."""
    self._hear(name).doing = doing

  def register(
    self, name: str, address: str | None = None, host: str | None = None
  ) -> None:
    """Notes that a node has started, and where.

    Args:
      address: Where it listens, if others are to find it.
      host: On which host it is, if there are several.
    """
    node = self._hear(name)
    node.is_ready = True
    node.address = address
    node.host = host
    self._enter(name, 'running')
    node.progressed_at = self._clock()

  def hear(
    self,
    name: str,
    progress: float | None = None,
    environment_seconds: float = 0.0,
  ) -> None:
    """Notes that a node called.

    Args:
      progress: How much it has done; None if that does not tell.
      environment_seconds: How long its environments have been at a step.
    """
    node = self._hear(name)
    node.environment_seconds = environment_seconds
    if progress is not None and progress != node.progress:
      node.progress = progress
      node.progressed_at = self._clock()

  def finish(self, name: str) -> None:
    """Notes that a node has done its part."""
    self._hear(name)
    self._enter(name, 'done')
    self._finished.add(name)

  def fail(self, name: str) -> None:
    """Notes that a node failed, and is not started again."""
    self._enter(name, 'failed')
    self._finished.add(name)

  def may_restart(self, name: str) -> bool:
    """Returns whether a node that ended can be started again.

    Not one that never got as far as to register: it would fail again. Nor one
    with which the others keep step.
    """
    node = self._nodes.get(name)
    if node is None or not node.is_ready:
      return False
    if self._keeps_step and kinds.kind_of(name).acts:
      return False
    return restarts.may_replace(name, node.restarts)

  def keep_cause(self, failure: failures.Failure) -> bool:
    """Notes why a node fails, before its process has ended.

    Returns:
      Whether it may be started again then. If not, nothing is noted.
    """
    if failure.is_bad_input or not self.may_restart(failure.node):
      return False
    self._causes[failure.node] = failure
    return True

  def take_cause(self, failure: failures.Failure) -> failures.Failure:
    """Returns why a node has ended: what it told, or else how it ended."""
    return self._causes.pop(failure.node, failure)

  def restart(self, name: str) -> int:
    """Notes that a node is being started again; returns how often it was."""
    node = self._nodes[name]
    node.restarts.take()
    self._enter(name, 'restarting')
    node.address = None
    node.heard_at = node.progressed_at = self._clock()
    node.environment_seconds = 0.0
    return node.restarts.num_taken

  def finished(self) -> list[str]:
    """Returns the names of the nodes that have done their part."""
    return sorted(self._finished)

  def has_finished(self, name: str) -> bool:
    return name in self._finished

  def address_of(self, name: str) -> str | None:
    """Returns where a node listens; None if it does not, or not yet."""
    node = self._nodes.get(name)
    return node.address if node else None

  def have_finished(self, phase: str) -> bool:
    """Returns whether all that have a part in a phase have done it.

    False before it is known who is to be expected.
    """
    names = [n for n in self._expected if kinds.kind_of(n).phase == phase]
    return bool(self._expected) and self._finished.issuperset(names)

  def have_all_started(self) -> bool:
    """Returns whether no node is at its start, or at a new one."""
    return not self._starting

  def is_acting_delayed(self) -> bool:
    """Returns whether all actors that are left, or all servers, start.

    Nobody acts then, and nobody is to blame.
    """
    if self.have_all_started():  # As nearly always.
      return False
    for kind in kinds.KINDS:
      if not kind.acts:
        continue
      states = [
        node.state
        for name, node in self._nodes.items()
        if kinds.kind_of(name) is kind and name not in self._finished
      ]
      if states and all(state in _STARTING for state in states):
        return True
    return False

  def figures(self, elapsed_seconds: float) -> dict[str, Any]:
    """Returns what the display shows of the nodes, by its names.

    Args:
      elapsed_seconds: Time of the run.
    """
    began_at = self._clock() - elapsed_seconds
    nodes = sorted(self._nodes.items())
    taken = sum(node.restarts.num_taken for _, node in nodes)
    return {
      'nodes': tuple((name, node.state) for name, node in nodes),
      'num_restarts': self._num_restarts_before + taken or None,
      'hosts': tuple((name, node.host) for name, node in nodes if node.host),
      'starts': tuple(
        loggers.NodeStart(name, node.doing, node.started_at - began_at)
        for name, node in nodes
        if node.state in _STARTING
      ),
    }

  def find_overdue(
    self, silence_seconds: float, environment_seconds: float
  ) -> dict[str, str]:
    """Finds nodes that hang; returns by name what is wrong.

    Args:
      silence_seconds: After how long without a call a node hangs.
      environment_seconds: How long a step of its environments may take.
    """
    now, overdue = self._clock(), {}
    for name, node in self._nodes.items():
      if name in self._finished:
        continue
      silence, limit = now - node.heard_at, silence_seconds
      if node.state in _STARTING:
        limit = max(limit, watchdog.START_SECONDS)
      if silence > limit:
        overdue[name] = _describe_silence(silence)
      elif node.environment_seconds > environment_seconds:
        overdue[name] = (
          'Its environment has been at one step or reset for '
          f'{node.environment_seconds:.0f} seconds.'
        )
    for name in list(overdue):
      # Who falls silent with another one may be found first.
      other = kinds.kind_of(name).reports_with
      if other is None or other.name not in self._nodes:
        continue
      silence = now - self._nodes[other.name].heard_at
      if silence > _PAUSE_SECONDS:
        del overdue[name]
        overdue[other.name] = _describe_silence(silence)
    return overdue

  def find_laggard(self) -> str | None:
    """Returns who of those that are at work got on longest ago."""
    names = [
      name
      for name, node in self._nodes.items()
      if node.is_ready and node.progress and name not in self._finished
    ]
    return min(names, key=lambda n: self._nodes[n].progressed_at, default=None)

  def describe(self) -> Mapping[str, str]:
    """Says of each node how it does, for a report."""
    now = self._clock()
    return {
      name: (
        f'{node.state}; got on {now - node.progressed_at:.0f} s ago, at '
        f'{node.progress:.0f}; reported {now - node.heard_at:.1f} s ago'
        + (
          f'; in its environment for {node.environment_seconds:.0f} s'
          if node.environment_seconds > 1
          else ''
        )
      )
      for name, node in sorted(self._nodes.items())
    }

  def _hear(self, name: str) -> _Node:
    node = self._get(name)
    node.heard_at = self._clock()
    return node

  def _get(self, name: str) -> _Node:
    if name not in self._nodes:
      budget = restarts.RestartBudget(self._max_restarts, self._clock)
      self._nodes[name] = _Node(budget)
      self._enter(name, self._nodes[name].state)
    return self._nodes[name]

  def _enter(self, name: str, state: str) -> None:
    """Notes what a node has come to."""
    node = self._get(name)
    node.state = state
    if state in _STARTING:
      node.started_at, node.doing = self._clock(), self._first_doing
      self._starting.add(name)
    else:
      self._starting.discard(name)


def _describe_silence(seconds: float) -> str:
  return f'It has not reported for {seconds:.0f} seconds.'
