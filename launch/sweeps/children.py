"""Child processes that run `repertory`."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

from repertory.launch.platform import child_processes

OUTPUT = 'output.txt'  # A run's output, in its directory.

_TAIL_BYTES = 2**14
_CODE = """
import sys
del sys.path[0]  # The working directory, which `repertory` does not look into.
from repertory.launch.platform import child_processes
child_processes.stop_with({parent})
from repertory.launch.cli import {module}
{module}.main()
"""


def command(module: str) -> list[str]:
  """Returns the command that runs the `main` of a module.

  The process gets a SIGHUP when this process, or the thread that started it,
  ends.
  """
  code = _CODE.format(parent=os.getpid(), module=module)
  return [sys.executable, '-c', code]


def environment() -> Mapping[str, str]:
  """Returns environment variables with the import path of this process."""
  paths = os.pathsep.join(path for path in sys.path if path)
  return {**os.environ, 'PYTHONPATH': paths}


class Child:
  """A run in its own process, whose output is appended to a file.

  It has its own session, so signals of the terminal reach this process only.
  """

  def __init__(self, directory: str, arguments: Sequence[str]):
    """Starts `repertory train`; raises OSError if that fails."""
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
    """Returns the exit code, -n if signal n ended it; None while it runs."""
    return self._process.poll()

  def stop(self) -> None:
    """Asks the run to write a checkpoint and end."""
    self._process.send_signal(signal.SIGTERM)

  def kill(self) -> None:
    """Kills the process and its descendants."""
    child_processes.kill_tree(self._process)

  def last_lines(self, count: int) -> list[str]:
    """Returns the last `count` lines of output, without empty ones."""
    try:
      with open(self._output, 'rb') as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(self._begin, size - _TAIL_BYTES))
        lines = file.read().decode(errors='replace').splitlines()
    except OSError as error:
      return [f'{self._output} cannot be read: {error.strerror}']
    return [line for line in lines if line.strip()][-count:]
