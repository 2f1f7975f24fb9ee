"""Process pool for the runs of a sweep."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from repertory.launch.platform import child_processes, interrupts
from repertory.launch.sweeps import grid, plans

OUTPUT = 'output.txt'  # A run's output, in its directory.

_TICK_SECONDS = 0.2
_NUM_LAST_LINES = 10
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
  """Returns the command of a module of `cli`, which ends with this process."""
  code = _CODE.format(parent=os.getpid(), module=module)
  return [sys.executable, '-c', code]


def environment() -> Mapping[str, str]:
  """Returns environment variables with the import path of this process."""
  paths = os.pathsep.join(path for path in sys.path if path)
  return {**os.environ, 'PYTHONPATH': paths}


class _Child:
  """A `repertory train`, in a session that gets no signals of the terminal."""

  def __init__(self, directory: str, arguments: Sequence[str]):
    os.makedirs(directory, exist_ok=True)
    self._output = os.path.join(directory, OUTPUT)
    self.begun_at = time.monotonic()
    self.stopped_at: float | None = None
    with open(self._output, 'ab') as file:
      self._begin = file.tell()
      self.process = subprocess.Popen(
        [*command('entry_point'), 'train', *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=file,
        stderr=subprocess.STDOUT,
        start_new_session=True,
      )

  def stop(self, timeout: float) -> None:
    """Asks the run to write a checkpoint and end, and later kills it."""
    now = time.monotonic()
    if self.stopped_at is None:
      self.stopped_at = now
      self.process.send_signal(signal.SIGTERM)
    elif now - self.stopped_at > timeout:
      child_processes.kill_tree(self.process)

  def last_lines(self) -> list[str]:
    try:
      with open(self._output, 'rb') as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(self._begin, size - _TAIL_BYTES))
        lines = file.read().decode(errors='replace').splitlines()
    except OSError as error:
      return [f'{self._output} cannot be read: {error.strerror}']
    return [line for line in lines if line.strip()][-_NUM_LAST_LINES:]


class Pool:
  """Runs the runs of a plan, up to `parallel` at a time.

  The first Ctrl-C, SIGTERM or SIGHUP asks all runs to stop, which they do with
  a checkpoint. A second one, or the time-out, kills them.
  """

  def __init__(
    self,
    plan: plans.SweepPlan,
    watcher: Any,
    directory: str,
    options: Callable[[grid.SweepRun], Sequence[str]],
    parallel: int,
    stop_seconds: float,
  ):
    """Starts nothing yet; `options` returns further arguments of a run."""
    self._plan = plan
    self._watcher = watcher
    self._directory = directory
    self._options = options
    self._parallel = parallel
    self._stop_seconds = stop_seconds
    self._running: dict[grid.SweepRun, _Child] = {}

  def run(self) -> int | None:
    """Runs all to their ends; returns the signal that ended it early."""
    with interrupts.catch_interrupts() as interruption:
      try:
        while True:
          if not interruption.is_set():
            self._fill()
          if not self._running:
            return interruption.number
          is_over = interruption.is_set()
          self._stop(self._running if is_over else self._plan.unwanted())
          time.sleep(_TICK_SECONDS)
          self._reap()
      except Exception:  # An error in this process.
        self._stop(self._running)
        deadline = time.monotonic() + self._stop_seconds
        while time.monotonic() < deadline and any(
          one.process.poll() is None for one in self._running.values()
        ):
          time.sleep(_TICK_SECONDS)
        raise
      finally:
        for one in self._running.values():
          child_processes.kill_tree(one.process)

  def _fill(self) -> None:
    """Starts runs up to the limit."""
    while len(self._running) < self._parallel and (run := self._plan.next()):
      self._watcher.begin(run)
      directory = os.path.join(self._directory, run.path)
      try:
        arguments = [*run.arguments, *self._options(run)]
        self._running[run] = _Child(directory, arguments)
      except OSError as error:
        lines = [f'It could not start: {error}']
        self._end(grid.FinishedRun(run, None, lines, 0.0))

  def _stop(self, unwanted: Collection[grid.SweepRun]) -> None:
    for run, one in self._running.items():
      if run in unwanted or one.stopped_at is not None:
        one.stop(self._stop_seconds)

  def _reap(self) -> None:
    for run, one in list(self._running.items()):
      code = one.process.poll()
      if code is not None:
        del self._running[run]
        seconds = time.monotonic() - one.begun_at
        was_stopped = one.stopped_at is not None
        self._end(
          grid.FinishedRun(run, code, one.last_lines(), seconds, was_stopped)
        )

  def _end(self, ended: grid.FinishedRun) -> None:
    self._watcher.end(ended)
    self._plan.end(ended)
