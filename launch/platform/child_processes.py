"""Child processes that end with their launcher."""

import contextlib
import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import psutil

from repertory.launch.platform import interrupts, printed

# Environment variables of a process and its children: process id of the
# launcher, id of the run, and generation (number of earlier starts).
LAUNCHER_VARIABLE = 'REPERTORY_LAUNCHER'
RUN_VARIABLE = 'REPERTORY_RUN'
GENERATION_VARIABLE = 'REPERTORY_LIFE'

# Signal on which a node's process prints the stacks of all its threads.
STACKS_SIGNAL = signal.SIGUSR2

# Program of a node's process. Launchers must not import it, since that would
# import TensorFlow.
_RUN_NODE = (
  'from repertory.launch.launchers import node_process; node_process.main()'
)

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2).
_KILL_SECONDS = 5


def node_command(name: str) -> list[str]:
  """Returns the command line of the process of a node, with its name."""
  return [sys.executable, '-c', _RUN_NODE, name]


def variables(run: str, paths: Sequence[str]) -> dict[str, str]:
  """Returns the environment variables of the processes of a run.

  `paths` are import paths: child processes must find the same modules as this
  process.
  """
  return {
    'PYTHONPATH': os.pathsep.join(path for path in paths if path),
    LAUNCHER_VARIABLE: str(os.getpid()),
    RUN_VARIABLE: run,
  }


def start(
  command: Sequence[str],
  environment: Mapping[str, str],
  generation: int,
  output: IO[Any],
  given: bytes | None = None,
  directory: str | None = None,
) -> subprocess.Popen:
  """Starts a process on this host, shielded from Ctrl-C.

  `environment` has the `variables`, `output` takes its output, `given` are the
  contents of its standard input, if not inherited, and `directory` is its
  working directory, if another.
  """
  variable = {GENERATION_VARIABLE: str(generation)}
  with _readable(given) as standard_input, interrupts.blocked():
    return subprocess.Popen(
      command,
      env={**os.environ, **environment, **variable},
      cwd=directory,
      stdin=standard_input,
      stdout=output,
      stderr=output,
    )


@contextlib.contextmanager
def _readable(given: bytes | None) -> Iterator[IO[bytes] | None]:
  """Yields an in-memory file; writing to a pipe would block on the reader."""
  if given is None:
    yield None
    return
  with open(os.memfd_create('given'), 'w+b') as file:
    file.write(given)
    file.seek(0)
    yield file


def release_input() -> None:
  """Replaces the standard input by /dev/null, which frees its contents."""
  null = os.open(os.devnull, os.O_RDONLY)
  os.dup2(null, sys.stdin.fileno())
  os.close(null)


def die_with_launcher() -> None:
  """Dies with the launcher; called first in the process of a node."""
  _get_signal_at_death(int(os.environ[LAUNCHER_VARIABLE]), signal.SIGKILL)
  printed.append()


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


def generation() -> int:
  """Returns the generation of this process: earlier starts in this run."""
  return int(os.environ.get(GENERATION_VARIABLE, '0'))


def kill_tree(process: subprocess.Popen) -> None:
  """Kills a process and all its descendants, unless it has ended."""
  if process.poll() is not None:  # Its process id may have been reused.
    return
  with contextlib.suppress(psutil.NoSuchProcess):
    parent = psutil.Process(process.pid)
    for member in (*parent.children(recursive=True), parent):
      with contextlib.suppress(psutil.NoSuchProcess):
        member.kill()
  # It may hang in disk I/O.
  with contextlib.suppress(subprocess.TimeoutExpired):
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
