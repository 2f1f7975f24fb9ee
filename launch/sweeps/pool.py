"""Process pool for the runs of a sweep."""

import dataclasses
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from repertory.launch.platform import interrupts
from repertory.launch.sweeps import children, grid

_TICK_SECONDS = 0.2
_NUM_LAST_LINES = 10

Running = Mapping[grid.SweepRun, children.Child]


@dataclasses.dataclass(frozen=True)
class FinishedRun:
  """Result of a run.

  Attributes:
    run: The run.
    code: Exit code, -n if signal n ended it; None if it could not start.
    lines: Last lines of its output.
    seconds: Duration.
    was_stopped: Whether the sweep had asked it to stop.
  """

  run: grid.SweepRun
  code: int | None
  lines: Sequence[str]
  seconds: float
  was_stopped: bool = False


class RunSource(Protocol):
  """Interface of sources of runs."""

  @property
  def num_to_come(self) -> int:
    """Number of runs that have not begun."""
    ...

  def next(self) -> grid.SweepRun | None:
    """Returns a run to start; None if none is available yet."""
    ...

  def unwanted(
    self, running: Collection[grid.SweepRun]
  ) -> Collection[grid.SweepRun]:
    """Returns the running ones that should be stopped."""
    ...

  def end(self, ended: FinishedRun) -> None:
    """Processes the result of a run."""
    ...


class Pool:
  """Runs the runs of a source, up to `parallel` at a time.

  The first Ctrl-C, SIGTERM or SIGHUP asks all runs to stop, which they do with
  a checkpoint. A second one, or the time-out, kills them.
  """

  def __init__(
    self,
    directory: str,
    options: Callable[[grid.SweepRun], Sequence[str]],
    parallel: int,
    stop_seconds: float,
  ):
    """Starts nothing yet.

    Args:
      directory: Directory of the sweep.
      options: Function that returns further arguments of a run.
      parallel: Number of concurrent runs.
      stop_seconds: Time-out for a run to stop after it was asked to.
    """
    self._directory = directory
    self._options = options
    self._parallel = parallel
    self._stop_seconds = stop_seconds
    self._running: dict[grid.SweepRun, children.Child] = {}
    self._begun_at: dict[grid.SweepRun, float] = {}
    self._stopped_at: dict[grid.SweepRun, float] = {}

  def run(
    self, source: RunSource, watch: Callable[[Running], None]
  ) -> int | None:
    """Runs all, and returns when no process is left.

    Args:
      source: Source of runs.
      watch: Called several times a second with the running ones.

    Returns:
      The number of the signal that ended it early, or None.
    """
    with interrupts.catch_interrupts() as interruption:
      try:
        while True:
          if not interruption.is_set():
            self._fill(source)
          if not self._running:
            return interruption.number
          self._stop(source, all_of_them=interruption.is_set())
          time.sleep(_TICK_SECONDS)
          self._reap(source)
          watch(self._running)
      except Exception:
        self._save_all()
        raise
      finally:
        for child in self._running.values():
          child.kill()

  def _fill(self, source: RunSource) -> None:
    """Starts runs up to the limit."""
    while len(self._running) < self._parallel:
      run = source.next()
      if run is None:
        return
      self._begun_at[run] = time.monotonic()
      directory = os.path.join(self._directory, run.path)
      try:
        self._running[run] = children.Child(
          directory, [*run.arguments, *self._options(run)]
        )
      except OSError as error:
        source.end(
          FinishedRun(run, None, [f'It could not start: {error}'], 0.0)
        )

  def _stop(self, source: RunSource, all_of_them: bool) -> None:
    """Asks runs to stop, once, and kills them after the time-out."""
    now = time.monotonic()
    wanted = set(self._running)
    if not all_of_them:
      wanted &= set(source.unwanted(list(self._running)))
    for run in wanted - self._stopped_at.keys():
      self._stopped_at[run] = now
      self._running[run].stop()
    for run, child in self._running.items():
      if now - self._stopped_at.get(run, now) > self._stop_seconds:
        child.kill()

  def _reap(self, source: RunSource) -> None:
    for run, child in list(self._running.items()):
      code = child.poll()
      if code is None:
        continue
      del self._running[run]
      source.end(
        FinishedRun(
          run,
          code,
          child.last_lines(_NUM_LAST_LINES),
          time.monotonic() - self._begun_at[run],
          was_stopped=self._stopped_at.pop(run, None) is not None,
        )
      )

  def _save_all(self) -> None:
    """Stops all runs with a checkpoint, after an error in this process."""
    deadline = time.monotonic() + self._stop_seconds
    for run, child in self._running.items():
      if run not in self._stopped_at:
        child.stop()
    while time.monotonic() < deadline:
      if all(child.poll() is not None for child in self._running.values()):
        return
      time.sleep(_TICK_SECONDS)
