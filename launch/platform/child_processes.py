"""Child processes that end with their launcher."""

import contextlib
import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO, Any

import psutil

from repertory.launch.platform import interrupts

# Environment variable with the id of the run, of its processes and their
# children.
RUN_VARIABLE = 'REPERTORY_RUN'

# Signal on which a node's process prints the stacks of all its threads.
STACKS_SIGNAL = signal.SIGUSR2

# Program of a Python process that calls a function, given by its module and
# name. It does not look for modules in its working directory.
_PROGRAM = """
import sys
sys.path[:] = filter(None, sys.path)
from {module} import {name}
{name}()
"""

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2).
_CHECK_SECONDS = 0.5
_KILL_SECONDS = 5


def import_paths() -> list[str]:
  """Returns the import paths of this process, for processes elsewhere."""
  return [os.path.abspath(path) for path in sys.path]


def command_of(function: Callable[..., Any], *arguments: str) -> list[str]:
  """Returns the command of a process that calls a function of a module."""
  names = {'module': function.__module__, 'name': function.__name__}
  return [sys.executable, '-c', _PROGRAM.format(**names), *arguments]


def memory_file(content: bytes = b'') -> IO[bytes]:
  """Opens an unnamed file with content, in memory on Linux."""
  if hasattr(os, 'memfd_create'):
    file: IO[bytes] = os.fdopen(os.memfd_create('repertory'), 'w+b')
  else:
    file = tempfile.TemporaryFile()  # noqa: SIM115
  file.write(content)
  file.seek(0)
  return file


def stop_with(parent: int) -> None:
  """Lets the kernel send SIGHUP to this process when its parent ends.

  It may come several times if the parent had several threads. Only the first
  SIGHUP is handled, whereas a second SIGTERM would end the process. The parent
  must have started this process in a thread that keeps running.
  """
  signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` is for the parent.
  get_signal_at_death(parent, signal.SIGHUP)


def get_signal_at_death(parent: int, number: int) -> None:
  """Sends a signal to this process at its parent's end, by the kernel on Linux.

  Elsewhere a thread sends it.
  """

  def check() -> None:
    while os.getppid() == parent:
      time.sleep(_CHECK_SECONDS)
    os.kill(os.getpid(), number)

  prctl = getattr(ctypes.CDLL(None), 'prctl', None)
  if prctl is None:
    threading.Thread(target=check, name='parent', daemon=True).start()
  else:
    prctl(_SET_PARENT_DEATH_SIGNAL, number)
  if os.getppid() != parent:
    os._exit(1)  # It had ended before the call.


def set_up_node(launcher: int) -> None:
  """Lets the process of a node die with its launcher, and handle no signals.

  Those of the terminal are for the launcher to handle.
  """
  get_signal_at_death(launcher, signal.SIGKILL)
  faulthandler.enable()
  faulthandler.register(STACKS_SIGNAL)
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  # SIG_IGN would be inherited by child processes of the environments.
  signal.signal(signal.SIGTERM, lambda number, frame: None)
  if not interrupts.is_hangup_ignored():
    signal.signal(signal.SIGHUP, lambda number, frame: None)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts.TERMINAL_SIGNALS)


def kill_tree(process: Any) -> None:
  """Kills a process and all its descendants, unless it has ended.

  Args:
    process: A `subprocess.Popen`, or a process with its methods.
  """
  if process.poll() is not None:  # Its process id may have been reused.
    return
  if process.pid is None:  # It has not started.
    process.send_signal(signal.SIGKILL)
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
