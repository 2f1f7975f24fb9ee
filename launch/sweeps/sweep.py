"""Runs a sweep: locks its directory, and executes its plan in processes."""

import collections
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from repertory.components.config.settings import SettingError
from repertory.components.loggers import figures
from repertory.launch.experiments import directories
from repertory.launch.platform import child_processes, interrupts
from repertory.launch.results import logs as logs_lib
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import plans

OUTPUT = 'output.txt'  # A run's output, in its directory.
# Folder of the lock, which in the sweep's directory would mark that as a run's.
_HIDDEN = '.sweep'

# Time-out for runs of a killed sweep, which write a checkpoint and end.
_LEAVE_SECONDS = 120.0
_LOOK_SECONDS = 0.5
_TICK_SECONDS = 0.2
_NUM_LAST_LINES = 10
_CODE = """
import sys
del sys.path[0]  # The working directory, which `repertory` does not look into.
from repertory.launch.platform import child_processes
child_processes.stop_with({parent})
from repertory.launch.cli import entry_point
entry_point.main()
"""


class Ending(NamedTuple):
  """Result of a sweep."""

  manifest: manifest_lib.SweepManifest
  failures: Sequence[manifest_lib.FailedRun]
  interrupted: int | None  # The signal that ended it early.


def check(directory: str, plan: plans.SweepPlan, fresh: bool) -> int:
  """Returns how many runs of a sweep are done; writes nothing."""
  directories.check_writable(directory)
  if not fresh:
    return len(_join(directory, plan).done())
  plan.join(manifest_lib.SweepManifest(directory))
  return 0


def run(
  directory: str,
  plan: plans.SweepPlan,
  options: Callable[[manifest_lib.SweepRun], Sequence[str]],
  parallel: int,
  *,
  stop_seconds: float,
  fresh: bool = False,
) -> Ending:
  """Runs all unfinished runs; see `Pool`."""
  with _holding(directory, fresh):
    manifest = _join(directory, plan)
    _wait_for_others(manifest)
    plan.open()
    manifest.save()
    pool = Pool(plan, manifest, options, parallel, stop_seconds)
    interrupted = pool.run()
  return Ending(manifest, pool.failures, interrupted)


def describe_code(code: int | None) -> str:
  """Describes the exit code of a process."""
  if code is None:
    return 'not started'
  if code >= 0:
    return f'exit code {code}'
  return f'killed by {signal.Signals(-code).name}'


def _join(directory: str, plan: plans.SweepPlan) -> manifest_lib.SweepManifest:
  """Adds a plan to the manifest of a directory.

  Refuses symbolic links, which would redirect the writes of runs.
  """
  manifest = manifest_lib.load(directory)
  plan.join(manifest)
  own = (
    _HIDDEN,
    manifest_lib.FILE,
    manifest_lib.UNFINISHED,
    manifest_lib.STUDY_FILE,
  )
  paths = (*own, *manifest.groups, *manifest.codes)
  directories.check_kinds(directory, paths, 'a sweep')
  return manifest


@contextlib.contextmanager
def _holding(directory: str, fresh: bool) -> Iterator[None]:
  """Locks a directory during the block, a new one if `fresh`."""
  hidden = os.path.join(directory, _HIDDEN)
  with contextlib.ExitStack() as held:
    held.enter_context(directories.hold(hidden))
    if fresh and os.listdir(directory) != [_HIDDEN]:
      directories.set_aside(directory)
      held.enter_context(directories.hold(hidden))
    yield


def _wait_for_others(manifest: manifest_lib.SweepManifest) -> None:
  """Waits for runs of an earlier sweep; raises SettingError on time-out."""
  deadline = time.monotonic() + _LEAVE_SECONDS
  for path in (path for path, code in manifest.codes.items() if code is None):
    directory = os.path.join(manifest.directory, path)
    if directories.is_held(directory):
      _print(f'Waiting for another process to end its run in {directory}.')
    while directories.is_held(directory):
      if time.monotonic() > deadline:
        raise SettingError(
          'directory',
          f'must not be in use, but another run still writes to {directory} '
          f'after {_LEAVE_SECONDS:g} seconds.',
        )
      time.sleep(_LOOK_SECONDS)


def command() -> list[str]:
  """Returns the command `repertory`, as a process that ends with this one."""
  return [sys.executable, '-c', _CODE.format(parent=os.getpid())]


class _Child:
  """A `repertory train`, in a session that gets no signals of the terminal."""

  def __init__(self, directory: str, arguments: Sequence[str]):
    os.makedirs(directory, exist_ok=True)
    self._output = os.path.join(directory, OUTPUT)
    self.begun_at = time.monotonic()
    self.stopped_at: float | None = None
    with open(self._output, 'a') as file:
      self._begin = file.tell()
      self.process = subprocess.Popen(
        [*command(), 'train', *arguments],
        env={
          **os.environ,
          'PYTHONPATH': os.pathsep.join(filter(None, sys.path)),
        },
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
    lines: collections.deque[str] = collections.deque(maxlen=_NUM_LAST_LINES)
    with contextlib.suppress(OSError), open(self._output, 'rb') as file:
      file.seek(self._begin)
      lines.extend(line.decode(errors='replace') for line in file)
    return [line.rstrip() for line in lines if line.strip()]


class Pool:
  """Runs the runs of a plan, up to `parallel` at a time, and prints progress.

  The first Ctrl-C, SIGTERM or SIGHUP asks all runs to stop, which they do with
  a checkpoint, as when this process ends. A second one, or the time-out, kills
  them.
  """

  def __init__(
    self,
    plan: plans.SweepPlan,
    manifest: manifest_lib.SweepManifest,
    options: Callable[[manifest_lib.SweepRun], Sequence[str]],
    parallel: int,
    stop_seconds: float,
  ):
    """Starts nothing yet; `options` returns further arguments of a run."""
    self._plan = plan
    self._manifest = manifest
    self._options = options
    self._parallel = parallel
    self._stop_seconds = stop_seconds
    self._running: dict[manifest_lib.SweepRun, _Child] = {}
    self.failures: list[manifest_lib.FinishedRun] = []

  def run(self) -> int | None:
    """Runs all to their ends; returns the signal that ended it early."""
    with interrupts.catch_interrupts() as interruption:
      try:
        while True:
          if not interruption.is_set():
            self._fill()
          if not self._running:
            return interruption.number
          if interruption.is_set():
            for one in self._running.values():
              one.stop(self._stop_seconds)
          time.sleep(_TICK_SECONDS)
          self._reap()
      except KeyboardInterrupt:
        for one in self._running.values():
          child_processes.kill_tree(one.process)
        raise

  def _fill(self) -> None:
    """Starts runs up to the limit."""
    while len(self._running) < self._parallel and (run := self._plan.next()):
      self._manifest.save()  # Trials may be new.
      _print(f'begun    {run.path}')
      directory = os.path.join(self._manifest.directory, run.path)
      try:
        arguments = [*run.arguments, *self._options(run)]
        self._running[run] = _Child(directory, arguments)
      except OSError as error:
        lines = [f'It could not start: {error}']
        self._end(run, None, 0.0, lines)

  def _reap(self) -> None:
    for run, one in list(self._running.items()):
      code = one.process.poll()
      if code is not None:
        del self._running[run]
        seconds = time.monotonic() - one.begun_at
        if code and one.stopped_at is not None:
          self._end(run, None, seconds)
        else:
          self._end(run, code, seconds, one.last_lines())

  def _end(
    self,
    run: manifest_lib.SweepRun,
    code: int | None,
    seconds: float,
    lines: Sequence[str] = (),
  ) -> None:
    """Records and prints a result; a run without last lines was stopped."""
    if code == 0:
      folder = os.path.join(
        self._manifest.directory, run.path, directories.LOGS
      )
      value = logs_lib.Logs(folder).last('evaluator', 'episode_return')
      state, note = 'done', 'no evaluation'
      if value is not None:
        note = f'evaluation {figures.number(value)}'
    elif code is None and not lines:
      state, note = 'stopped', 'it can be resumed'
    else:
      state, note = 'failed', describe_code(code)
      self.failures.append(manifest_lib.FailedRun(run, code, lines))
    self._manifest.codes[run.path] = code
    self._manifest.save()
    _print(f'{state:8} {run.path}: {note}, {figures.duration(seconds)}')
    self._plan.end(run)


def _print(line: str) -> None:
  """Prints a line; if the terminal is gone, the runs end all the same."""
  with contextlib.suppress(OSError):
    print(line, flush=True)
