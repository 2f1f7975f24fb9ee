"""Runs a sweep: locks its directory, and executes its plan in processes."""

import collections
import contextlib
import dataclasses
import functools
import glob
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from repertory.components.config.settings import SettingError
from repertory.components.loggers import figures
from repertory.launch.experiments import directories
from repertory.launch.platform import child_processes, interrupts, zygote
from repertory.launch.results import logs as logs_lib
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import plans

OUTPUT = 'output.txt'  # A run's output, in its directory.
# Folder of the lock, which in the sweep's directory would mark that as a run's.
_HIDDEN = '.sweep'

_TICK_SECONDS = 0.2
_NUM_LAST_LINES = 10
# What runs import.
_MODULES = ['repertory.launch.opening.run', 'repertory.launch.nodes.one_thread']


class FailedRun(NamedTuple):
  """Result of a run that failed."""

  path: str
  code: int | None  # -n if signal n ended it; None if it could not start.
  lines: Sequence[str]  # The last ones of its output.

  @property
  def problem(self) -> str:
    """Its exit code, in words."""
    if self.code is None:
      return 'not started'
    if self.code >= 0:
      return f'exit code {self.code}'
    return f'killed by {signal.Signals(-self.code).name}'


@contextlib.contextmanager
def opened(
  directory: str, plan: plans.SweepPlan, fresh: bool
) -> Iterator[manifest_lib.SweepManifest]:
  """Locks a directory, a new one if `fresh`, and opens a plan in it.

  Raises:
    SettingError: If another process uses it, or it has another sweep.
  """
  # What is not of a sweep is refused before anything is written.
  if not fresh:
    load(directory)
  hidden = os.path.join(directory, _HIDDEN)
  with contextlib.ExitStack() as held:
    held.enter_context(directories.hold(hidden))
    _check_unused(directory)
    if fresh and os.listdir(directory) != [_HIDDEN]:
      directories.set_aside(directory)
      held.enter_context(directories.hold(hidden))
    manifest = load(directory)
    plan.open(manifest)
    paths = *manifest.groups, *manifest.codes
    directories.check_kinds(directory, paths, 'a sweep')
    manifest.save()
    yield manifest


def _check_unused(directory: str) -> None:
  """Refuses a directory in which a run still writes, by its path."""
  for inside in ('', '*', os.path.join('*', '*')):
    path = os.path.join(glob.escape(directory), inside, directories.LOCK)
    for run in map(os.path.dirname, sorted(glob.glob(path))):
      is_held = False
      with contextlib.suppress(OSError):  # `train` refuses links and such.
        is_held = directories.is_held(run)
      if is_held:
        raise SettingError(
          'directory',
          f'must not be in use, but a run still writes to {run}. Runs of a '
          'sweep that was killed end by themselves; try again then.',
        )


def load(directory: str) -> manifest_lib.SweepManifest:
  """Reads the manifest of a directory; refuses links, which redirect writes."""
  files = manifest_lib.FILE, manifest_lib.UNFINISHED, manifest_lib.STUDY_FILE
  directories.check_kinds(directory, (_HIDDEN, *files), 'a sweep')
  return manifest_lib.load(directory)


def _train(
  train: Callable[[Sequence[str]], None], arguments: Sequence[str]
) -> None:
  """Trains in this process, which stops with that of the sweep."""
  os.setsid()  # Signals of the terminal are for the sweep.
  child_processes.stop_with(int(sys.argv[1]))
  signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts.TERMINAL_SIGNALS)
  train(arguments)


class _Child(NamedTuple):
  """A `repertory train` in a process."""

  process: zygote.Process
  begun_at: float
  output: str
  begin: int  # Of its output in the file.

  def last_lines(self) -> list[str]:
    lines: collections.deque[str] = collections.deque(maxlen=_NUM_LAST_LINES)
    with contextlib.suppress(OSError), open(self.output, 'rb') as file:
      file.seek(self.begin)
      lines.extend(line.decode(errors='replace') for line in file)
    return [line.rstrip() for line in lines if line.strip()]


@dataclasses.dataclass
class Pool:
  """Runs the runs of a plan, up to `parallel` at a time, and prints progress.

  The first Ctrl-C, SIGTERM or SIGHUP asks all runs to stop, which they do with
  a checkpoint, as when this process ends. A second one kills them, or the end
  of `stop_seconds`.
  """

  plan: plans.SweepPlan
  manifest: manifest_lib.SweepManifest
  train: Callable[[Sequence[str]], None]  # Runs `repertory train`.
  parallel: int
  stop_seconds: float
  storage: str = ''  # Of the sweep, with a folder for each run.
  failures: list[FailedRun] = dataclasses.field(default_factory=list)

  def __post_init__(self):
    self._running: dict[manifest_lib.SweepRun, _Child] = {}
    self._zygote = zygote.make()

  def run(self) -> int | None:
    """Runs all to their ends; returns the signal that ended it early."""
    deadline = float('inf')
    with (
      contextlib.closing(self._zygote),
      interrupts.catch_interrupts() as interruption,
    ):
      try:
        while True:
          if not interruption.is_set():
            self._fill()
          elif deadline == float('inf'):
            deadline = time.monotonic() + self.stop_seconds
            for one in self._running.values():
              one.process.send_signal(signal.SIGTERM)
          elif time.monotonic() > deadline:
            self._kill()
          if not self._running:
            return interruption.number
          time.sleep(_TICK_SECONDS)
          self._reap(interruption.is_set())
      except KeyboardInterrupt:
        self._kill()
        raise

  def _kill(self) -> None:
    for one in self._running.values():
      child_processes.kill_tree(one.process)

  def _fill(self) -> None:
    """Starts runs up to the limit."""
    while len(self._running) < self.parallel and (run := self.plan.next()):
      self.manifest.save()  # Trials may be new.
      _print(f'begun    {run.path}')
      try:
        self._running[run] = self._start(run)
      except OSError as error:
        self._end(run, None, 0.0, [f'It could not start: {error}'])

  def _start(self, run: manifest_lib.SweepRun) -> _Child:
    directory = os.path.join(self.manifest.directory, run.path)
    os.makedirs(directory, exist_ok=True)
    arguments = [*run.arguments, f'--directory={directory}']
    if self.storage:
      arguments.append(f'--storage={self.storage.rstrip("/")}/{run.path}')
    with open(os.path.join(directory, OUTPUT), 'a') as file:
      begin = file.tell()
      self._zygote.begin(_MODULES, file)
      task = pickle.dumps(functools.partial(_train, self.train, arguments))
      process = self._zygote.start(run.path, task, file)
    return _Child(process, time.monotonic(), file.name, begin)

  def _reap(self, is_over: bool) -> None:
    for run, one in list(self._running.items()):
      code = one.process.poll()
      if code is not None:
        del self._running[run]
        seconds = time.monotonic() - one.begun_at
        if code and is_over:
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
    """Records and prints a result; a run without code and lines was stopped."""
    if code == 0:
      folder = os.path.join(self.manifest.directory, run.path, directories.LOGS)
      value = logs_lib.Logs(folder).last('evaluator', 'episode_return')
      state, note = 'done', 'no evaluation'
      if value is not None:
        note = f'evaluation {figures.number(value)}'
    elif code is None and not lines:
      state, note = 'stopped', 'it can be resumed'
    else:
      self.failures.append(FailedRun(run.path, code, lines))
      state, note = 'failed', self.failures[-1].problem
    self.manifest.codes[run.path] = code
    self.manifest.save()
    _print(f'{state:8} {run.path}: {note}, {figures.duration(seconds)}')
    self.plan.end(run)


def _print(line: str) -> None:
  """Prints a line; if the terminal is gone, the runs end all the same."""
  with contextlib.suppress(OSError):
    print(line, flush=True)
