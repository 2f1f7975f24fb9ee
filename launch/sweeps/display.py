"""Display of a running sweep."""

import dataclasses
import sys
from typing import Any, cast

import rich.console
from rich import panel, table, text

from repertory.components.loggers import (
  dashboard_drawing,
  dashboard_streams,
  dashboard_thread,
  figures,
)
from repertory.components.loggers import dashboard_style as style
from repertory.components.loggers.status import Status

_CLOSE_SECONDS = 5.0
_BAR_WIDTH = 16


@dataclasses.dataclass(frozen=True)
class RunStatus:
  """Status of a run of a sweep; None for unknown values.

  Attributes:
    name: Name of the run.
    steps: Environment steps so far.
    max_steps: Total environment steps.
    episode_return: Mean return of its last training episodes.
    evaluation_return: Mean return of its last evaluation.
  """

  name: str
  steps: int
  max_steps: int
  episode_return: float | None
  evaluation_return: float | None


@dataclasses.dataclass(frozen=True)
class SweepStatus(Status):
  """Status of a sweep.

  Attributes:
    runs: Running ones.
    counts: Number of runs in each state.
  """

  runs: tuple[RunStatus, ...] = ()
  counts: tuple[tuple[str, int], ...] = ()


class Display:
  """Shows the progress of a sweep: lines, and on a terminal a table below.

  Draws in its own thread, like `loggers.Dashboard`, so that a slow terminal
  does not block the sweep.
  """

  def __init__(self):
    """Shows nothing yet."""
    writer = dashboard_streams.find_writer(sys.stdout)
    console = rich.console.Console(file=cast(Any, writer or sys.stdout))
    self._drawing = _Drawing(console)
    self._thread = dashboard_thread.DrawingThread(
      self._drawing, at_end=writer.close if writer else lambda: None
    )
    self._status = SweepStatus('')

  @property
  def is_interactive(self) -> bool:
    """Whether it shows a table."""
    return self._drawing.is_interactive

  def show(self, status: SweepStatus) -> None:
    """Redraws the table."""
    self._status = status
    self._thread.show(status, ())

  def print(self, line: str) -> None:
    """Prints a line, after `show` was called."""
    self._thread.print(line)

  def close(self) -> None:
    """Releases the terminal, and leaves the last table on it."""
    self._thread.close(self._status, (), _CLOSE_SECONDS)


class _Drawing(dashboard_drawing.Drawing):
  """Draws a sweep in place of a dashboard's run."""

  def print(self, lines):
    for line in lines:
      self._console.print(
        line, soft_wrap=True, markup=False, highlight=False, emoji=False
      )

  def _make_view(self, status, returns):
    del returns
    return _make_table(cast(SweepStatus, status))

  def _print_line(self, status, is_last=False):
    """Prints nothing, as `Display.print` reports results."""


def _make_table(status: SweepStatus) -> rich.console.RenderableType:
  """Returns a table of the running runs, and counts of all states."""
  rows = table.Table.grid(padding=(0, 2, 0, 0))
  rows.add_column(no_wrap=True, overflow='ellipsis', ratio=1)
  rows.add_column(width=_BAR_WIDTH)
  for _ in range(3):
    rows.add_column(justify='right', no_wrap=True)
  heading = [
    text.Text(name, style=style.LABEL)
    for name in ('running', 'steps', '', 'return', 'evaluation')
  ]
  rows.add_row(*heading)
  for run in status.runs:
    rows.add_row(
      text.Text(run.name),
      style.make_bar(run.steps, run.max_steps, width=_BAR_WIDTH),
      figures.number(run.steps),
      *(
        '' if value is None else figures.number(value)
        for value in (run.episode_return, run.evaluation_return)
      ),
    )
  if not status.runs:
    rows = text.Text('all runs have ended')
  counts = ', '.join(f'{count} {state}' for state, count in status.counts)
  clock = figures.duration(status.elapsed_seconds)
  return panel.Panel(
    rich.console.Group(
      rows, text.Text(f'{counts}   {clock}', style=style.NOTE)
    ),
    title=text.Text(f' {status.title} ', style='bold'),
    title_align='left',
    border_style=style.ACCENT,
    padding=(0, 1),
  )
