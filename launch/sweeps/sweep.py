"""Runs a sweep: locks its directory, and executes and displays its plan."""

import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence

import rich.console
from rich import live, panel, table, text

from repertory.components.config.settings import SettingError
from repertory.components.loggers import dashboard_view as view
from repertory.components.loggers import figures
from repertory.launch.opening import directories
from repertory.launch.results import logs as logs_lib
from repertory.launch.sweeps import grid, plans, pool
from repertory.launch.sweeps import manifest as manifest_lib

# Folder of the lock, which in the sweep's directory would mark that as a run's.
_HIDDEN = '.sweep'

# Time-out for runs of a killed sweep, which write a checkpoint and end.
_LEAVE_SECONDS = 120.0
_LOOK_SECONDS = 0.5
_SHOW_SECONDS = 1.0
_BAR_WIDTH = 16


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
    progress = _Progress(plan, manifest)
    running = pool.Pool(
      plan, progress, directory, options, parallel, stop_seconds
    )
    try:
      interrupted = running.run()
    finally:
      progress.close()
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
  """Records progress, prints lines, and on a terminal a table below them."""

  def __init__(
    self, plan: plans.SweepPlan, manifest: manifest_lib.SweepManifest
  ):
    self._plan = plan
    self._manifest = manifest
    self._counts = {'done': plan.num_done(), 'failed': 0, 'stopped': 0}
    self._begun_at = time.monotonic()
    self._shown_at = 0.0
    self._console = rich.console.Console()
    self._live = live.Live(console=self._console, auto_refresh=False)
    self._is_gone = False  # Whether the terminal was closed.
    self.failures: list[grid.FinishedRun] = []

  def begin(self, run: grid.SweepRun) -> None:
    self._save()  # Trials may be new.
    if not self._console.is_interactive:
      self._print(f'begun    {run.path}')

  def end(self, ended: grid.FinishedRun) -> None:
    if ended.code == 0:
      value = self._last(ended.run, 'evaluator', 'episode_return')
      state, note = 'done', 'no evaluation'
      if value is not None:
        note = f'evaluation {figures.number(value)}'
    elif ended.was_stopped:
      state, note = 'stopped', 'it can be resumed'
    else:
      state, note = 'failed', describe_code(ended.code)
      self.failures.append(ended)
    self._counts[state] += 1
    self._manifest.codes[ended.run.path] = (
      None if state == 'stopped' else ended.code
    )
    self._save()
    took = figures.duration(ended.seconds)
    self._print(f'{state:8} {ended.run.path}: {note}, {took}')

  def show(self, running: Collection[grid.SweepRun]) -> None:
    """Updates the table, at most once in `_SHOW_SECONDS`."""
    now = time.monotonic()
    if self._console.is_interactive and now - self._shown_at >= _SHOW_SECONDS:
      self._shown_at = now
      self._draw(self._live.start)
      self._draw(self._console.show_cursor)  # Even if this is killed.
      self._draw(self._live.update, self._make_table(running), refresh=True)

  def close(self) -> None:
    """Leaves the last table on the terminal."""
    if self._console.is_interactive:
      self._draw(self._live.update, self._make_table(()))
      self._draw(self._live.stop)

  def _print(self, line: str) -> None:
    self._draw(
      self._console.print,
      line,
      soft_wrap=True,
      markup=False,
      highlight=False,
      emoji=False,
    )

  def _draw(self, draw: Callable[..., object], *given, **settings) -> None:
    """Draws nothing more once the terminal is gone, but lets the runs end."""
    with contextlib.suppress(OSError):
      if not self._is_gone:
        self._is_gone = True
        draw(*given, **settings)
        self._is_gone = False

  def _make_table(self, running: Collection[grid.SweepRun]) -> panel.Panel:
    """Returns a table of the running runs, and counts of all states."""
    rows = table.Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True, overflow='ellipsis', ratio=1)
    rows.add_column(width=_BAR_WIDTH)
    for _ in range(3):
      rows.add_column(justify='right', no_wrap=True)
    headings = ('running', 'steps', '', 'return', 'evaluation')
    rows.add_row(*(text.Text(name, style=view.LABEL) for name in headings))
    for run in running:
      labels = ('actors', 'replay', 'evaluator')
      steps = int(max(self._last(run, one, 'steps') or 0 for one in labels))
      returns = [
        self._last(run, label, 'episode_return')
        for label in ('actors', 'evaluator')
      ]
      rows.add_row(
        text.Text(run.path),
        view.make_bar(steps, self._plan.max_steps(run), width=_BAR_WIDTH),
        figures.number(steps),
        *('' if value is None else figures.number(value) for value in returns),
      )
    waiting = {'running': len(running), 'waiting': self._plan.num_to_come}
    counts = ', '.join(
      f'{count} {state}'
      for state, count in {**waiting, **self._counts}.items()
      if count
    )
    clock = figures.duration(time.monotonic() - self._begun_at)
    return view.make_panel(
      rich.console.Group(
        rows if running else text.Text('all runs have ended'),
        text.Text(f'{counts}   {clock}', style=view.NOTE),
      ),
      f'sweep {self._manifest.directory}',
    )

  def _last(self, run: grid.SweepRun, label: str, name: str) -> float | None:
    """Returns a number of the last row of a run's log."""
    folder = os.path.join(self._manifest.directory, run.path, directories.LOGS)
    return logs_lib.Logs(folder).last(label, name)

  def _save(self) -> None:
    """Saves the manifest; on failure, prints a warning."""
    try:
      self._manifest.save()
    except OSError as error:
      path = os.path.join(self._manifest.directory, manifest_lib.FILE)
      self._print(f'{path} cannot be written: {error.strerror}')
