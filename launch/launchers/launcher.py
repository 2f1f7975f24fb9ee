"""Launchers: interface and registry."""

import abc
import collections
import contextlib
import dataclasses
import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from absl import logging

from repertory.launch import failures
from repertory.launch.experiments import registries
from repertory.launch.launchers import node_graph as node_graph_lib

# Time-out of nodes after they were asked to end; and after a second Ctrl-C.
_EXIT_SECONDS = 5.0
HURRIED_SECONDS = 0.5

_POLL_SECONDS = 0.1

# Time for processes to print their stacks.
_STACKS_SECONDS = 1.0

_LOG_LINES = 20
# Harmless messages of XLA in TensorFlow 2.15 at its first compilation.
_NOISE = re.compile(
  r'WARNING: All log messages before absl::InitializeLog\(\)'
  r'|I\d{4} .*\] Compiled cluster using XLA!'
  r'|.*\] SetPriority unimplemented for this stream'
)


class Workers(abc.ABC):
  """Launched nodes of a node graph, by name.

  Attributes:
    program: The node graph.
    is_forced: Whether waits for ending nodes are short, after a second Ctrl-C.
  """

  is_forced = False

  def __init__(
    self,
    program: node_graph_lib.NodeGraph,
    addresses: Mapping[str, str | None],
    log_directory: str,
  ):
    """Takes the addresses of serving nodes, by name, if known.

    Output of processes is in files named by `NodeGraph.labels`.
    """
    self.program = program
    self._addresses = addresses
    self._paths = {
      name: os.path.join(log_directory, label)
      for name, label in program.labels.items()
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
    """Makes a client of a serving node; see `grpc_servers.Client`."""
    address = self.address_of(name)
    if address is None:
      raise RuntimeError(f'{name} must be placed before it is called.')
    return self.program.rpc.make_client(address)

  @property
  def exit_seconds(self) -> float:
    """Time-out of nodes after they were asked to end."""
    return HURRIED_SECONDS if self.is_forced else _EXIT_SECONDS

  def wait_for_end(self, seconds: float) -> None:
    """Waits until all nodes have ended, or for `seconds`."""
    deadline = time.monotonic() + seconds
    while any(map(self.is_alive, self.names)):
      if time.monotonic() > deadline:
        return
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

    Returns:
      The name of the node that owns the killed process; None if the node cannot
      be killed.
    """
    del name

  def restart(self, name: str) -> None:
    """Restarts a node that has ended, at the same address.

    Only called if the launcher has `can_restart`.
    """
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
    time.sleep(_STACKS_SECONDS)
    for name in asked:
      self._fetch(name)
    return {
      name: _rest_of_log(self._paths[name], start)
      for name, start in asked.items()
    }

  def _fetch(self, *names: str) -> None:  # noqa: B027
    """Fetches all output of nodes to their files."""

  def _ask_for_stacks(self, name: str) -> None:
    """Makes a process print the stacks of its threads."""
    raise NotImplementedError(f'{name} has no process.')


def _rest_of_log(path: str, start: int) -> str:
  """Returns a node's output from byte `start` on."""
  try:
    with open(path, errors='replace') as file:
      file.seek(start)
      return file.read()
  except OSError as error:  # It may have been deleted.
    return f'{type(error).__name__}: {error}\n'


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

  @abc.abstractmethod
  def launch(
    self, program: node_graph_lib.NodeGraph, log_directory: str
  ) -> contextlib.AbstractContextManager[Workers]:
    """Launches a node graph; ends all its nodes when the block ends.

    Threads that do not end cannot be killed; they cause a warning.

    Args:
      program: The node graph.
      log_directory: Folder for the output of nodes.
    """

  def check(self) -> None:  # noqa: B027
    """Raises ValueError if the launcher cannot be used in this process."""


_Kind = TypeVar('_Kind', bound=type[Launcher])

_REGISTRY: registries.Registry[type[Launcher]] = registries.Registry(
  'repertory.launch.launchers', 'launch_type', suffix='_launcher'
)


def register(launcher: _Kind) -> _Kind:
  """Registers a launcher under its name; a decorator.

  In this folder, names of files with launchers end with `_launcher`.
  """
  _REGISTRY.register(launcher.name, launcher, launcher.rank)
  return launcher


def get(name: str) -> type[Launcher]:
  """Returns the launcher with this name.

  Raises:
    ValueError: If there is no such launcher; suggests the nearest name.
  """
  return _REGISTRY.get(name)


def launchers() -> Mapping[str, type[Launcher]]:
  """Returns all launchers by name."""
  return _REGISTRY.entries
