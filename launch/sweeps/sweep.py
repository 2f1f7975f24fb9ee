"""Runs a sweep: holds its directory, and runs what its plan says."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence

from repertory.components.settings import SettingError
from repertory.launch.runs import directories
from repertory.launch.sweeps import display, grid, plans, pool, tally
from repertory.launch.sweeps import manifest as manifest_lib

# Its lock is in there: in the directory itself it would make it that of a run.
_HIDDEN = '.sweep'

# Runs of a sweep that was killed write a checkpoint, and then they end.
_LEAVE_SECONDS = 120.0
_LOOK_SECONDS = 0.5


@dataclasses.dataclass(frozen=True)
class Ending:
  """How a sweep ended.

  Attributes:
    manifest: What is in its directory.
    num_done: Runs of this sweep that ended well, now or before.
    failures: How those ended that failed.
    interrupted: Number of the signal that ended it early; None if none did.
  """

  manifest: manifest_lib.Manifest
  num_done: int
  failures: Sequence[pool.Ended]
  interrupted: int | None


def check(directory: str, plan: plans.Plan, fresh: bool) -> int:
  """Sees whether a plan fits what a directory holds; writes nothing.

  Args:
    directory: The sweep's.
    plan: It is to run there.
    fresh: Whether what is there is to be moved aside.

  Returns:
    How many of its runs are done already.

  Raises:
    SettingError: If it does not.
  """
  directories.check_writable(directory)
  manifest = _load(directory, fresh)
  plan.join(manifest)
  if not fresh:
    _check_kinds(manifest)
  return plan.num_done()


def run(
  directory: str,
  plan: plans.Plan,
  options: Callable[[grid.Run], Sequence[str]],
  parallel: int,
  *,
  title: str,
  stop_seconds: float,
  fresh: bool = False,
) -> Ending:
  """Runs what is not done, and returns when no process is left.

  Args:
    directory: The sweep's.
    plan: What to run.
    options: Returns what else to type for a run, such as its directory.
    parallel: How many runs at a time.
    title: What the display calls it.
    stop_seconds: How long to wait for a run that was asked to stop.
    fresh: Whether to move aside what is there.

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


def _load(directory: str, fresh: bool) -> manifest_lib.Manifest:
  found = None if fresh else manifest_lib.load(directory)
  return found or manifest_lib.Manifest(directory)


def _check_kinds(manifest: manifest_lib.Manifest) -> None:
  """Refuses links, which runs of the sweep would write through.

  Raises:
    SettingError: With the first of them.
  """
  own = (_HIDDEN, manifest_lib.FILE, manifest_lib.UNFINISHED)
  paths = (*own, *manifest.groups, *manifest.codes)
  directories.check_kinds(manifest.directory, paths, 'a sweep')


@contextlib.contextmanager
def _holding(directory: str, fresh: bool) -> Iterator[None]:
  """Holds a directory during the block, a new one if asked to."""
  hidden = os.path.join(directory, _HIDDEN)
  with contextlib.ExitStack() as held:
    held.enter_context(directories.hold(hidden))
    if fresh and os.listdir(directory) != [_HIDDEN]:
      directories.set_aside(directory)
      held.enter_context(directories.hold(hidden))
    yield


def _wait_for_others(manifest: manifest_lib.Manifest) -> None:
  """Waits for runs of an earlier sweep that have not ended yet.

  Raises:
    SettingError: If they do not end in time.
  """
  deadline = time.monotonic() + _LEAVE_SECONDS
  for path, code in manifest.codes.items():
    directory = os.path.join(manifest.directory, path)
    is_told = False
    while code is None and directories.is_held(directory):
      if not is_told:
        print(
          f'Waiting for another process to end its run in {directory}.',
          flush=True,
        )
        is_told = True
      if time.monotonic() > deadline:
        raise SettingError(
          'directory',
          f'must not be in use, but another run writes to {directory}, after '
          f'{_LEAVE_SECONDS:g} seconds still.',
        )
      time.sleep(_LOOK_SECONDS)
