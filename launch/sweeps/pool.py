"""Process pool for the runs of a sweep."""

import dataclasses
import os
import time
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from repertory.launch.platform import interrupts
from repertory.launch.sweeps import children, grid

_TICK_SECONDS = 0.2
_NUM_LAST_LINES = 10


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

  def unwanted(self) -> Collection[grid.SweepRun]:
    """Returns runs that should be stopped if they are running."""
    ...

  def end(self, ended: FinishedRun) -> None:
    """Processes the result of a run."""
    ...


@dataclasses.dataclass
class _Running:
  child: children.Child
  begun_at: float
  stopped_at: float | None = None


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
    self._running: dict[grid.SweepRun, _Running] = {}

  def run(
    self,
    source: RunSource,
    watch: Callable[[Collection[grid.SweepRun]], None],
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
          is_over = interruption.is_set()
          self._stop(self._running if is_over else source.unwanted())
          time.sleep(_TICK_SECONDS)
          self._reap(source)
          watch(self._running)
      except Exception:  # An error in this process.
        self._stop(self._running)
        deadline = time.monotonic() + self._stop_seconds
        while time.monotonic() < deadline and any(
          one.child.poll() is None for one in self._running.values()
        ):
          time.sleep(_TICK_SECONDS)
        raise
      finally:
        for one in self._running.values():
          one.child.kill()

  def _fill(self, source: RunSource) -> None:
    """Starts runs up to the limit."""
    while len(self._running) < self._parallel and (run := source.next()):
      directory = os.path.join(self._directory, run.path)
      try:
        child = children.Child(directory, [*run.arguments, *self._options(run)])
      except OSError as error:
        lines = [f'It could not start: {error}']
        source.end(FinishedRun(run, None, lines, 0.0))
      else:
        self._running[run] = _Running(child, time.monotonic())

  def _stop(self, unwanted: Collection[grid.SweepRun]) -> None:
    """Asks runs to stop, once, and kills them after the time-out."""
    now = time.monotonic()
    for run, one in self._running.items():
      if run in unwanted and one.stopped_at is None:
        one.stopped_at = now
        one.child.stop()
      if one.stopped_at is not None and now - one.stopped_at > (
        self._stop_seconds
      ):
        one.child.kill()

  def _reap(self, source: RunSource) -> None:
    for run, one in list(self._running.items()):
      code = one.child.poll()
      if code is not None:
        del self._running[run]
        lines = one.child.last_lines(_NUM_LAST_LINES)
        seconds = time.monotonic() - one.begun_at
        was_stopped = one.stopped_at is not None
        source.end(FinishedRun(run, code, lines, seconds, was_stopped))
