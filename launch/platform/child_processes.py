"""Child processes that end with their launcher."""

import contextlib
import ctypes
import faulthandler
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any

import psutil

from repertory.launch.platform import interrupts

# Environment variable of a node's process and its children: id of the run.
RUN_VARIABLE = 'REPERTORY_RUN'

# Signal on which a node's process prints the stacks of all its threads.
STACKS_SIGNAL = signal.SIGUSR2

# Command of a node's process; its name follows.
NODE_COMMAND = (
  sys.executable,
  '-c',
  'from repertory.launch.launchers import node_process; node_process.main()',
)

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2).
_KILL_SECONDS = 5


def start_node(
  name: str,
  context: tuple[Any, ...],
  launch_spec: bytes,
  file: IO,
  run: str,
  paths: Sequence[str] | None = None,
  directory: str | None = None,
) -> subprocess.Popen:
  """Starts the process of a node on this host, shielded from Ctrl-C.

  Args:
    name: Name of the node.
    context: Port or None, network interface, and generation.
    launch_spec: A pickled `NodeLaunchSpec`.
    file: File for its output, opened to append.
    run: Id of the run, see `kill_orphans`.
    paths: Its import paths; those of this process if None.
    directory: Its working directory; that of this process if None.
  """
  given = pickle.dumps((os.getpid(), *context)) + launch_spec
  paths = [path for path in sys.path if path] if paths is None else paths
  variables = {
    **os.environ,
    'PYTHONPATH': os.pathsep.join(paths),
    RUN_VARIABLE: run,
  }
  with _readable(given) as standard_input, interrupts.blocked():
    return subprocess.Popen(
      [*NODE_COMMAND, name],
      env=variables,
      cwd=directory,
      stdin=standard_input,
      stdout=file,
      stderr=file,
    )


@contextlib.contextmanager
def _readable(given: bytes) -> Iterator[IO[bytes]]:
  """Yields an in-memory file; writing to a pipe would block on the reader."""
  with open(os.memfd_create('given'), 'w+b') as file:
    file.write(given)
    file.seek(0)
    yield file


def release_input() -> None:
  """Replaces the standard input by /dev/null, which frees its contents."""
  null = os.open(os.devnull, os.O_RDONLY)
  os.dup2(null, sys.stdin.fileno())
  os.close(null)


def die_with(parent: int) -> None:
  """Lets the kernel kill this process when its parent ends."""
  _get_signal_at_death(parent, signal.SIGKILL)


def stop_with(parent: int) -> None:
  """Lets the kernel send SIGHUP to this process when its parent ends.

  It may come several times if the parent had several threads. Only the first
  SIGHUP is handled, whereas a second SIGTERM would end the process. The parent
  must have started this process in a thread that keeps running.
  """
  signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` is for the parent.
  _get_signal_at_death(parent, signal.SIGHUP)


def _get_signal_at_death(parent: int, number: int) -> None:
  ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, number)
  if os.getppid() != parent:
    os._exit(1)  # It had ended before the call.


def ignore_terminal_signals() -> None:
  """Ignores terminal signals, which are for the launcher to handle."""
  faulthandler.enable()
  faulthandler.register(STACKS_SIGNAL)
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  # SIG_IGN would be inherited by child processes of the environments.
  signal.signal(signal.SIGTERM, lambda number, frame: None)
  if not interrupts.is_hangup_ignored():
    signal.signal(signal.SIGHUP, lambda number, frame: None)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts.TERMINAL_SIGNALS)


def kill_tree(process: subprocess.Popen) -> None:
  """Kills a process and all its descendants."""
  for member in _tree(process.pid):
    with contextlib.suppress(psutil.NoSuchProcess):
      member.kill()
  with contextlib.suppress(
    subprocess.TimeoutExpired
  ):  # It may hang in disk I/O.
    process.wait(_KILL_SECONDS)


def kill_orphans(run: str, alive: set[int]) -> None:
  """Kills orphaned processes of a run, except `alive` and their children."""
  for process in psutil.process_iter():
    with contextlib.suppress(psutil.Error):
      if process.environ().get(RUN_VARIABLE) != run:
        continue
      family = {process.pid, *(p.pid for p in process.parents())}
      if process.pid != os.getpid() and not family & alive:
        process.kill()


def _tree(pid: int) -> list[psutil.Process]:
  """Returns a process and its descendants, descendants first."""
  with contextlib.suppress(psutil.NoSuchProcess):
    parent = psutil.Process(pid)
    return [*parent.children(recursive=True), parent]
  return []
