"""Display of a running sweep."""

import dataclasses
from typing import cast

import rich.console
from rich import text

from repertory.components.loggers import dashboard_view as view
from repertory.components.loggers import figures, live_display
from repertory.components.loggers.status import Status

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


class Display(live_display.LiveDisplay):
  """Shows the progress of a sweep: lines, and on a terminal a table below."""

  def _make_view(self, status):
    return _make_table(cast(SweepStatus, status))

  def _make_line(self, status, is_last):
    """Returns nothing, as `print` reports results."""
    return ''


def _make_table(status: SweepStatus) -> rich.console.RenderableType:
  """Returns a table of the running runs, and counts of all states."""
  rows = view.make_grid(padding=(0, 2, 0, 0))
  rows.add_column(no_wrap=True, overflow='ellipsis', ratio=1)
  rows.add_column(width=_BAR_WIDTH)
  for _ in range(3):
    rows.add_column(justify='right', no_wrap=True)
  heading = [
    text.Text(name, style=view.LABEL)
    for name in ('running', 'steps', '', 'return', 'evaluation')
  ]
  rows.add_row(*heading)
  for run in status.runs:
    rows.add_row(
      text.Text(run.name),
      view.make_bar(run.steps, run.max_steps, width=_BAR_WIDTH),
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
  return view.make_panel(
    rich.console.Group(rows, text.Text(f'{counts}   {clock}', view.NOTE)),
    status.title,
  )
