"""Tracks the progress of a sweep in its manifest and on its display."""

import os
import signal
import time
from collections.abc import Callable, Collection

from repertory.components.loggers import figures
from repertory.launch.opening import directories
from repertory.launch.results import logs as logs_lib
from repertory.launch.sweeps import display, grid, pool
from repertory.launch.sweeps import manifest as manifest_lib

_SHOW_SECONDS = 1.0
_NOT_BEGUN = 'waiting'
# Logs that have the progress of a run.
_LABELS = ('actors', 'replay', 'evaluator')


class Tally:
  """Records and displays the progress and results of a source's runs.

  Attributes:
    failures: Results of failed runs.
  """

  def __init__(
    self,
    source: pool.RunSource,
    manifest: manifest_lib.SweepManifest,
    title: str,
    shown: display.Display,
    num_done: int,
    max_steps: Callable[[grid.SweepRun], int],
  ):
    """Displays nothing yet.

    Args:
      source: Source of runs.
      manifest: Manifest that records their exit codes.
      title: Title of the sweep.
      shown: Display of the sweep.
      num_done: Number of runs that had succeeded before.
      max_steps: Function that returns the total environment steps of a run.
    """
    self._source = source
    self._manifest = manifest
    self._title = title
    self._display = shown
    self._max_steps = max_steps
    self._counts = {'done': num_done, 'failed': 0, 'stopped': 0}
    self._begun_at = time.monotonic()
    self._shown_at = 0.0
    self.failures: list[pool.FinishedRun] = []

  @property
  def num_to_come(self) -> int:
    return self._source.num_to_come

  def next(self) -> grid.SweepRun | None:
    run = self._source.next()
    if run is not None:
      self._save()  # Trials may be new.
      if not self._display.is_interactive:
        self._display.print(f'begun    {run.path}')
    return run

  def unwanted(
    self, running: Collection[grid.SweepRun]
  ) -> Collection[grid.SweepRun]:
    return self._source.unwanted(running)

  def end(self, ended: pool.FinishedRun) -> None:
    if ended.code == 0:
      state, note = 'done', self._evaluation(ended.run)
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
    self._source.end(ended)
    took = figures.duration(ended.seconds)
    self._display.print(f'{state:8} {ended.run.path}: {note}, {took}')

  def show(self, running: pool.Running) -> None:
    """Updates the display, at most once in `_SHOW_SECONDS`."""
    now = time.monotonic()
    if now - self._shown_at < _SHOW_SECONDS:
      return
    self._shown_at = now
    self._display.update(self._status(running))

  def close(self) -> None:
    """Shows the final status, and closes the display."""
    self._display.update(self._status({}))
    self._display.close()

  def _status(self, running: pool.Running) -> display.SweepStatus:
    counts = {
      'running': len(running),
      _NOT_BEGUN: self.num_to_come,
      **self._counts,
    }
    return display.SweepStatus(
      self._title,
      runs=tuple(map(self._read, running)),
      counts=tuple((state, count) for state, count in counts.items() if count),
      elapsed_seconds=time.monotonic() - self._begun_at,
    )

  def _read(self, run: grid.SweepRun) -> display.RunStatus:
    """Returns the progress of a run, from the last rows of its logs."""
    logs = self._logs(run)
    steps = [logs.last(label, 'steps') or 0 for label in _LABELS]
    return display.RunStatus(
      run.path,
      steps=int(max(steps)),
      max_steps=self._max_steps(run),
      episode_return=logs.last('actors', 'episode_return'),
      evaluation_return=logs.last('evaluator', 'episode_return'),
    )

  def _evaluation(self, run: grid.SweepRun) -> str:
    value = self._logs(run).last('evaluator', 'episode_return')
    return (
      f'evaluation {figures.number(value)}'
      if value is not None
      else 'no evaluation'
    )

  def _logs(self, run: grid.SweepRun) -> logs_lib.Logs:
    directory = os.path.join(self._manifest.directory, run.path)
    return logs_lib.Logs(os.path.join(directory, directories.LOGS))

  def _save(self) -> None:
    """Saves the manifest; on failure, prints a warning."""
    try:
      self._manifest.save()
    except OSError as error:
      path = os.path.join(self._manifest.directory, manifest_lib.FILE)
      self._display.print(f'{path} cannot be written: {error.strerror}')


def describe_code(code: int | None) -> str:
  """Describes the exit code of a process."""
  if code is None:
    return 'not started'
  if code >= 0:
    return f'exit code {code}'
  return f'killed by {signal.Signals(-code).name}'
