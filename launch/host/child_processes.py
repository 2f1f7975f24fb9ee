"""Processes that live and die with the one that launched them."""

import contextlib
import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

import psutil

from repertory.launch.host import interrupts, printed

# Tell a process, and those that it starts: who launched it, in which run, and
# how often it was started before.
LAUNCHER_VARIABLE = 'REPERTORY_LAUNCHER'
RUN_VARIABLE = 'REPERTORY_RUN'
LIFE_VARIABLE = 'REPERTORY_LIFE'

# Makes a node's process print the stacks of all its threads.
STACKS_SIGNAL = signal.SIGUSR2

# What the process of a node runs. Who starts it must not import it, for
# TensorFlow would come along.
_RUN_NODE = (
  'from repertory.launch.launchers import node_process; node_process.main()'
)

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2).
_KILL_SECONDS = 5


def node_command(name: str) -> list[str]:
  """Returns the command of the process of a node, which reads what it is.

  Args:
    name: The node's, which lists of processes show.
  """
  return [sys.executable, '-c', _RUN_NODE, name]


def start(
  command: Sequence[str],
  environment: Mapping[str, str],
  path: str,
  given: bytes | None = None,
) -> subprocess.Popen:
  """Starts a process of this host, of which Ctrl-C stays away.

  Args:
    environment: Its variables besides this process's.
    path: The file to which it appends what it prints.
    given: What it reads from its standard input, if it has one of its own.
  """
  os.makedirs(os.path.dirname(path), exist_ok=True)  # It may be gone.
  with (
    open(path, 'a') as file,
    _readable(given) as standard_input,
    interrupts.blocked(),
  ):
    return subprocess.Popen(
      command,
      env={**os.environ, **environment},
      stdin=standard_input,
      stdout=file,
      stderr=file,
    )


@contextlib.contextmanager
def _readable(given: bytes | None) -> Iterator[IO[bytes] | None]:
  """Yields a file in memory: to write to a pipe would wait for the reader."""
  if given is None:
    yield None
    return
  with open(os.memfd_create('given'), 'w+b') as file:
    file.write(given)
    file.seek(0)
    yield file


def let_go_of_input() -> None:
  """Lets nobody read the standard input any more, and frees what it holds.

  What this process starts would inherit it.
  """
  null = os.open(os.devnull, os.O_RDONLY)
  os.dup2(null, sys.stdin.fileno())
  os.close(null)


def die_with_launcher() -> None:
  """Lets the kernel end this process when the one that launched it is gone.

  The first thing that a node's process does. What it prints is appended from
  then on.
  """
  _get_signal_at_death(int(os.environ[LAUNCHER_VARIABLE]), signal.SIGKILL)
  printed.append()


def stop_with(parent: int) -> None:
  """Lets the kernel ask this process to stop when its parent is gone.

  It does so by SIGHUP, of which `interrupts.catch_interrupts` heeds the first
  alone. For there may be several: when a parent with several threads is killed,
  this process passes from one of them to the next, and is told of each death.
  A second SIGTERM would end it without a checkpoint.

  Args:
    parent: Process id of the one that started it, in a thread that lives on.
  """
  signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` is for the parent.
  _get_signal_at_death(parent, signal.SIGHUP)


def _get_signal_at_death(parent: int, number: int) -> None:
  ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, number)
  if os.getppid() != parent:
    os._exit(1)  # It was gone before the kernel was asked.


def heed_launcher_alone() -> None:
  """Lets this process be interrupted by nobody but its launcher.

  Ctrl-C and SIGHUP reach all processes of a terminal, and SIGTERM may be sent
  to a whole group.
  """
  faulthandler.enable()
  faulthandler.register(STACKS_SIGNAL)
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  # Ignored it would be by what the node's environments start, too.
  signal.signal(signal.SIGTERM, lambda number, frame: None)
  if not interrupts.is_hangup_ignored():
    signal.signal(signal.SIGHUP, lambda number, frame: None)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts.TERMINAL_SIGNALS)


def life() -> int:
  """Returns how often this process was started before, in this run."""
  return int(os.environ.get(LIFE_VARIABLE, '0'))


def kill_tree(process: subprocess.Popen) -> None:
  """Kills a process and all that descend from it."""
  for member in _tree(process.pid):
    with contextlib.suppress(psutil.NoSuchProcess):
      member.kill()
  with contextlib.suppress(subprocess.TimeoutExpired):  # It waits for a disk.
    process.wait(_KILL_SECONDS)


def kill_strays(run: str, alive: set[int]) -> None:
  """Kills what processes of a run started and left behind.

  Args:
    run: What `RUN_VARIABLE` is in its processes.
    alive: Process ids of those that are to live on, with their children.
  """
  for process in psutil.process_iter():
    with contextlib.suppress(psutil.Error):
      if process.environ().get(RUN_VARIABLE) != run:
        continue
      family = {process.pid, *(p.pid for p in process.parents())}
      if process.pid != os.getpid() and not family & alive:
        process.kill()


def _tree(pid: int) -> list[psutil.Process]:
  """Returns a process and all that descend from it, those first."""
  with contextlib.suppress(psutil.NoSuchProcess):
    parent = psutil.Process(pid)
    return [*parent.children(recursive=True), parent]
  return []
