"""Runs a sweep: locks its directory, and executes its plan."""

import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence

from repertory.components.config.settings import SettingError
from repertory.components.loggers import figures
from repertory.launch.experiments import directories
from repertory.launch.results import logs as logs_lib
from repertory.launch.sweeps import grid, plans, pool
from repertory.launch.sweeps import manifest as manifest_lib

# Folder of the lock, which in the sweep's directory would mark that as a run's.
_HIDDEN = '.sweep'

# Time-out for runs of a killed sweep, which write a checkpoint and end.
_LEAVE_SECONDS = 120.0
_LOOK_SECONDS = 0.5


@dataclasses.dataclass(frozen=True)
class Ending:
  """Result of a sweep."""

  manifest: manifest_lib.SweepManifest
  num_done: int  # Now or before.
  failures: Sequence[grid.FinishedRun]
  interrupted: int | None  # The signal that ended it early.


def check(directory: str, plan: plans.SweepPlan, fresh: bool) -> int:
  """Returns how many runs of a plan are done in a directory; writes nothing."""
  directories.check_writable(directory)
  _join(directory, plan, fresh)
  return plan.num_done()


def run(
  directory: str,
  plan: plans.SweepPlan,
  options: Callable[[grid.SweepRun], Sequence[str]],
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
    progress = _Progress(manifest)
    interrupted = pool.Pool(
      plan, progress, directory, options, parallel, stop_seconds
    ).run()
  return Ending(manifest, plan.num_done(), progress.failures, interrupted)


def describe_code(code: int | None) -> str:
  """Describes the exit code of a process."""
  if code is None:
    return 'not started'
  if code >= 0:
    return f'exit code {code}'
  return f'killed by {signal.Signals(-code).name}'


def _join(
  directory: str, plan: plans.SweepPlan, fresh: bool = False
) -> manifest_lib.SweepManifest:
  """Joins a plan with the manifest of a directory, a new one if `fresh`.

  Refuses symbolic links, which would redirect the writes of runs.
  """
  found = None if fresh else manifest_lib.load(directory)
  manifest = found or manifest_lib.SweepManifest(directory)
  plan.join(manifest)
  if not fresh:
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
  for path, code in manifest.codes.items():
    directory = os.path.join(manifest.directory, path)
    is_printed = False
    while code is None and directories.is_held(directory):
      if not is_printed:
        print(
          f'Waiting for another process to end its run in {directory}.',
          flush=True,
        )
        is_printed = True
      if time.monotonic() > deadline:
        raise SettingError(
          'directory',
          f'must not be in use, but another run still writes to {directory} '
          f'after {_LEAVE_SECONDS:g} seconds.',
        )
      time.sleep(_LOOK_SECONDS)


class _Progress:
  """Records the progress of a sweep in its manifest, and prints it."""

  def __init__(self, manifest: manifest_lib.SweepManifest):
    self._manifest = manifest
    self.failures: list[grid.FinishedRun] = []

  def begin(self, run: grid.SweepRun) -> None:
    self._save()  # Trials may be new.
    _print(f'begun    {run.path}')

  def end(self, ended: grid.FinishedRun) -> None:
    if ended.code == 0:
      folder = os.path.join(
        self._manifest.directory, ended.run.path, directories.LOGS
      )
      value = logs_lib.Logs(folder).last('evaluator', 'episode_return')
      state, note = 'done', 'no evaluation'
      if value is not None:
        note = f'evaluation {figures.number(value)}'
    elif ended.was_stopped:
      state, note = 'stopped', 'it can be resumed'
    else:
      state, note = 'failed', describe_code(ended.code)
      self.failures.append(ended)
    self._manifest.codes[ended.run.path] = (
      None if state == 'stopped' else ended.code
    )
    self._save()
    took = figures.duration(ended.seconds)
    _print(f'{state:8} {ended.run.path}: {note}, {took}')

  def _save(self) -> None:
    """Saves the manifest; on failure, prints a warning."""
    try:
      self._manifest.save()
    except OSError as error:
      path = os.path.join(self._manifest.directory, manifest_lib.FILE)
      _print(f'{path} cannot be written: {error.strerror}')


def _print(line: str) -> None:
  """Prints a line; if the terminal is gone, the runs end all the same."""
  with contextlib.suppress(OSError):
    print(line, flush=True)
