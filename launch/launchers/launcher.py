"""What hosts the nodes of a program, whichever it is."""

import abc
import contextlib
import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from repertory.launch import failures, registries
from repertory.launch.launchers import program as program_lib

# How long nodes may take to end when whoever ends them is hurried.
HURRIED_SECONDS = 0.5


class Workers(abc.ABC):
  """The nodes of a program that was launched, by name.

  Attributes:
    program: What was launched.
    is_hurried: Whether who ends nodes may hardly wait for them any more: Ctrl-C
      came twice.
  """

  is_hurried = False

  def __init__(self, program: program_lib.Program):
    self.program = program

  @property
  def names(self) -> list[str]:
    """Names all nodes that have a thread or process of their own."""
    return self.program.names

  def find_ended(self) -> list[str]:
    """Returns the nodes that have ended, those that others need first."""
    ended = [name for name in self.names if not self.is_alive(name)]
    return sorted(ended, key=lambda name: not self.program[name].kind.serves)

  def find_killed_service(self) -> str | None:
    """Returns the name of a node that others need and that was killed."""
    for name in self.find_ended():
      if self.program[name].kind.serves and self.failure_of(name).is_lost:
        return name
    return None

  def clients_alive(self) -> list[str]:
    """Returns the nodes that still run and end by themselves."""
    return [
      name
      for name in self.names
      if not self.program[name].kind.serves and self.is_alive(name)
    ]

  def find_trouble(self) -> failures.Failure | None:
    """Says why the nodes cannot go on for long, though they live; or None."""
    return None

  def is_placed(self, name: str) -> bool:
    """Returns whether it is known where a node is, so that it can be called."""
    del name
    return True

  def kill_all(self, names: Collection[str]) -> None:
    """Kills those of some nodes that have not ended; threads go on."""
    for name in names:
      if self.is_alive(name):
        self.kill(name)

  def waiting(self) -> str:
    """Says what the start of nodes waits for; '' if for nothing."""
    return ''

  @abc.abstractmethod
  def client(self, name: str) -> Any:
    """Returns a client of a node that serves.

    Its calls end after the program's time-out. `futures` makes them without
    waiting; `address` tells where the node listens.
    """

  @abc.abstractmethod
  def is_alive(self, name: str) -> bool:
    """Returns whether a node has not ended."""

  @abc.abstractmethod
  def failure_of(self, name: str) -> failures.Failure:
    """Says how a node ended; `is_lost` if it was killed."""

  @abc.abstractmethod
  def kill(self, name: str) -> str | None:
    """Kills a node that hangs, with those beside it.

    Returns:
      The name of the node that was killed, in whose process it is; None if it
      cannot be killed.
    """

  @abc.abstractmethod
  def restart(self, name: str) -> None:
    """Starts a node that has ended again, where the others find it.

    Asked only of launchers that can.
    """

  @abc.abstractmethod
  def log_of(self, name: str) -> str:
    """Returns the last lines a node printed, and where they are; or ''."""

  @abc.abstractmethod
  def stacks(self, names: Sequence[str]) -> Mapping[str, str]:
    """Returns where the threads of nodes are, by node.

    Args:
      names: Nodes that have registered; others would die of the question.
    """

  @abc.abstractmethod
  def wait_for_end(self, seconds: float, but: str | None = None) -> None:
    """Waits until all nodes but one have ended, or that one has."""


@dataclasses.dataclass(frozen=True)
class Launcher(abc.ABC):
  """A way to host the nodes of any program.

  A subclass may be a frozen dataclass of settings of its own, each a
  `settings.field`, which become flags.

  Attributes:
    name: What `--lp_launch_type` takes.
    title: What the display calls it.
    help: What its nodes run in; for the help of the flag.
    can_restart: Whether nodes can be killed, and started again.
    needs_pickles: Whether nodes are in other processes, so that what they are
      given must be picklable.
    rank: Where it is listed, the simplest first.
  """

  name: ClassVar[str]
  title: ClassVar[str]
  help: ClassVar[str]
  can_restart: ClassVar[bool] = False
  needs_pickles: ClassVar[bool] = True
  rank: ClassVar[int] = 99

  @property
  def spans_hosts(self) -> bool:
    """Whether nodes may be on several hosts."""
    return False

  @abc.abstractmethod
  def launch(
    self, program: program_lib.Program, log_directory: str
  ) -> contextlib.AbstractContextManager[Workers]:
    """Launches a program; when the block ends, all its nodes are ended.

    One that can neither be ended nor killed, a thread, is told as a warning.

    Args:
      log_directory: Takes what nodes print.
    """

  def check(self) -> None:  # noqa: B027
    """Raises ValueError if it cannot launch from here."""


_Kind = TypeVar('_Kind', bound=type[Launcher])

_REGISTRY: registries.Registry[type[Launcher]] = registries.Registry(
  'repertory.launch.launchers', 'launch_type', suffix='_launcher'
)


def register(launcher: _Kind) -> _Kind:
  """Lets a launcher be chosen by its name; a decorator.

  In this folder, the names of files with launchers end with `_launcher`.
  """
  _REGISTRY.register(launcher.name, launcher, launcher.rank)
  return launcher


def get(name: str) -> type[Launcher]:
  """Returns the launcher of that name.

  Raises:
    ValueError: If there is none, with the nearest name.
  """
  return _REGISTRY.get(name)


def launchers() -> Mapping[str, type[Launcher]]:
  """Returns all launchers by name."""
  return _REGISTRY.entries
