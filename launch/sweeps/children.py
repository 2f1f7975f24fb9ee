"""`repertory`, in processes that this one starts and ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

from repertory.launch.host import child_processes

# What a run prints, in its directory.
OUTPUT = 'output.txt'

_TAIL_BYTES = 2**14
_CODE = """
import sys
del sys.path[0]  # The working directory, which `repertory` does not look into.
from repertory.launch.host import child_processes
child_processes.stop_with({parent})
from repertory.launch.commands import {module}
{module}.main()
"""


def command(module: str) -> list[str]:
  """Returns what starts the `main` of a module of the command line.

  It gets a SIGHUP when this process, or the thread that starts it, is gone.
  """
  code = _CODE.format(parent=os.getpid(), module=module)
  return [sys.executable, '-c', code]


def environment() -> Mapping[str, str]:
  """Returns the environment in which that finds what this process does."""
  paths = os.pathsep.join(path for path in sys.path if path)
  return {**os.environ, 'PYTHONPATH': paths}


class Child:
  """A run in a process of its own, which appends what it prints to a file.

  It is in a session of its own: what a terminal sends, by Ctrl-C or because it
  is closed, reaches this process alone.
  """

  def __init__(self, directory: str, arguments: Sequence[str]):
    """Starts it.

    Args:
      directory: The run's.
      arguments: What to type behind `repertory train`.

    Raises:
      OSError: If that is not possible.
    """
    os.makedirs(directory, exist_ok=True)
    self._output = os.path.join(directory, OUTPUT)
    with open(self._output, 'ab') as file:
      self._begin = file.tell()
      self._process = subprocess.Popen(
        [*command('entry_point'), 'train', *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=file,
        stderr=subprocess.STDOUT,
        start_new_session=True,
      )

  def poll(self) -> int | None:
    """Returns its exit code, -n if signal n ended it; None while it runs."""
    return self._process.poll()

  def stop(self) -> None:
    """Asks it to write a checkpoint and end."""
    self._process.send_signal(signal.SIGTERM)

  def kill(self) -> None:
    """Ends it at once, with all that it has started."""
    child_processes.kill_tree(self._process)

  def last_lines(self, count: int) -> list[str]:
    """Returns the last lines that it has printed, at most so many."""
    try:
      with open(self._output, 'rb') as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(self._begin, size - _TAIL_BYTES))
        lines = file.read().decode(errors='replace').splitlines()
    except OSError as error:
      return [f'{self._output} cannot be read: {error.strerror}']
    return [line for line in lines if line.strip()][-count:]
