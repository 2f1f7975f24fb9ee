"""Runs a sweep: locks its directory, and executes its plan."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence

from repertory.components.config.settings import SettingError
from repertory.launch.opening import directories
from repertory.launch.sweeps import display, grid, plans, pool, tally
from repertory.launch.sweeps import manifest as manifest_lib

# Folder of the lock, which in the sweep's directory would mark that as a run's.
_HIDDEN = '.sweep'

# Time-out for runs of a killed sweep, which write a checkpoint and end.
_LEAVE_SECONDS = 120.0
_LOOK_SECONDS = 0.5


@dataclasses.dataclass(frozen=True)
class Ending:
  """Result of a sweep.

  Attributes:
    manifest: Manifest of its directory.
    num_done: Number of its runs that succeeded, now or before.
    failures: Results of failed runs.
    interrupted: Number of the signal that ended it early, or None.
  """

  manifest: manifest_lib.SweepManifest
  num_done: int
  failures: Sequence[pool.FinishedRun]
  interrupted: int | None


def check(directory: str, plan: plans.SweepPlan, fresh: bool) -> int:
  """Checks that a plan fits the sweep in a directory; writes nothing.

  Args:
    directory: Directory of the sweep.
    plan: Plan to run there.
    fresh: Whether the old contents will be moved aside.

  Returns:
    The number of its runs that are done already.

  Raises:
    SettingError: If it does not fit.
  """
  directories.check_writable(directory)
  manifest = _load(directory, fresh)
  plan.join(manifest)
  if not fresh:
    _check_kinds(manifest)
  return plan.num_done()


def run(
  directory: str,
  plan: plans.SweepPlan,
  options: Callable[[grid.SweepRun], Sequence[str]],
  parallel: int,
  *,
  title: str,
  stop_seconds: float,
  fresh: bool = False,
) -> Ending:
  """Runs all unfinished runs, and returns when no process is left.

  Args:
    directory: Directory of the sweep.
    plan: Plan to run.
    options: Function that returns further arguments of a run, such as its
      directory.
    parallel: Number of concurrent runs.
    title: Title of the display.
    stop_seconds: Time-out for a run to stop after it was asked to.
    fresh: Whether to move the old contents aside.

  Raises:
    SettingError: If the directory is in use, or of another sweep.
  """
  with _holding(directory, fresh):
    manifest = _load(directory, fresh=False)
    plan.join(manifest)
    _check_kinds(manifest)
    _wait_for_others(manifest)
    source = plan.open()
    manifest.save()
    running = pool.Pool(directory, options, parallel, stop_seconds)
    shown = display.Display()
    counted = tally.Tally(
      source, manifest, title, shown, plan.num_done(), plan.max_steps
    )
    try:
      interrupted = running.run(counted, counted.show)
    finally:
      counted.close()
  return Ending(manifest, plan.num_done(), counted.failures, interrupted)


def _load(directory: str, fresh: bool) -> manifest_lib.SweepManifest:
  found = None if fresh else manifest_lib.load(directory)
  return found or manifest_lib.SweepManifest(directory)


def _check_kinds(manifest: manifest_lib.SweepManifest) -> None:
  """Raises for symbolic links, which would redirect the writes of runs.

  Raises:
    SettingError: Naming the first of them.
  """
  own = (_HIDDEN, manifest_lib.FILE, manifest_lib.UNFINISHED)
  paths = (*own, *manifest.groups, *manifest.codes)
  directories.check_kinds(manifest.directory, paths, 'a sweep')


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
  """Waits for runs of an earlier sweep that have not ended yet.

  Raises:
    SettingError: If they do not end in time.
  """
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
