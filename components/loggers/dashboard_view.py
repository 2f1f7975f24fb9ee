"""Layout of the dashboard."""

import math
from collections.abc import Iterable, Sequence

from rich import console as rich_console
from rich import panel, table, text

from repertory.components.loggers import dashboard_lists, figures, sparkline
from repertory.components.loggers import dashboard_style as style
from repertory.components.loggers import status as status_lib

_MAX_WIDTH = 100


class StatusView:
  """Draws a status as one panel, as wide as the terminal up to a limit."""

  def __init__(self, status: status_lib.Status, returns: Sequence[float] = ()):
    """Stores what to draw.

    Args:
      status: Status of the run.
      returns: Mean returns so far, for the curve.
    """
    self._status = status
    self._returns = returns

  def __rich_console__(
    self,
    console: rich_console.Console,
    options: rich_console.ConsoleOptions,
  ) -> rich_console.RenderResult:
    """Yields the panel; called by rich."""
    glyphs = style.ASCII if options.ascii_only else style.UNICODE
    width = min(options.max_width, _MAX_WIDTH)
    inner = width - 4
    sections = (
      _draw_progress(self._status),
      _draw_figures(self._status, inner),
      _draw_curve(self._returns, inner, glyphs),
      dashboard_lists.draw_tables(self._status.tables, inner),
      dashboard_lists.draw_inference(self._status.inference),
      dashboard_lists.draw_learners(self._status),
      dashboard_lists.draw_nodes(self._status, glyphs),
      dashboard_lists.draw_hosts(self._status.hosts, glyphs),
      _draw_message(self._status.message),
    )
    yield panel.Panel(
      rich_console.Group(*_separate(sections)),
      title=text.Text(f' {self._status.title} ', style='bold'),
      title_align='left',
      border_style=style.ACCENT,
      padding=(0, 1),
      width=width,
    )


def _separate(sections) -> Iterable[rich_console.RenderableType]:
  first = True
  for section in sections:
    if section is None:
      continue
    if not first:
      yield text.Text()
    yield section
    first = False


def _draw_progress(status: status_lib.Status) -> rich_console.RenderableType:
  """Draws the progress and the time."""
  clock = figures.duration(status.elapsed_seconds)
  left = status.seconds_left
  if left is not None and math.isfinite(left):
    clock += f', {figures.duration(left)} left'
  steps = text.Text.assemble((figures.number(status.steps), style.VALUE))
  if status.max_steps is not None:
    steps.append(f' of {figures.number(status.max_steps)}')
  steps.append(' steps')
  counts = table.Table.grid(expand=True)
  counts.add_column()
  counts.add_column(justify='right')
  counts.add_row(steps, clock)
  if not status.max_steps:
    return counts
  bar = table.Table.grid(expand=True, padding=(0, 1))
  bar.add_column(ratio=1)
  bar.add_column(justify='right')
  # Rounded down, so that 100 % means the end.
  percent = min(100, 100 * status.steps // status.max_steps)
  bar.add_row(
    style.make_bar(status.steps, status.max_steps),
    text.Text(f'{percent} %', style=style.VALUE),
  )
  return rich_console.Group(bar, counts)


def _draw_figures(status: status_lib.Status, width: int) -> table.Table:
  """Draws two groups of metrics, side by side if there is room."""
  acting = _make_group('acting', _list_acting(status))
  learning = _make_group('learning', _list_learning(status))
  grid = table.Table.grid(expand=True)
  grid.add_column(ratio=1)
  if width < style.SIDE_BY_SIDE_WIDTH:
    grid.add_row(acting)
    grid.add_row('')
    grid.add_row(learning)
  else:
    grid.add_column(ratio=1)
    grid.add_row(acting, learning)
  return grid


def _list_acting(status: status_lib.Status) -> list[tuple]:
  rows = []
  if status.mean_return is not None:
    note = f'mean of {status.num_returns}'
    rows.append(('return', figures.number(status.mean_return), note))
  for label, value, steps in (
    ('evaluation', status.evaluation_return, status.evaluation_steps),
    ('best', status.best_return, status.best_steps),
  ):
    if value is not None:
      note = f'at {figures.number(steps)} steps' if steps is not None else ''
      rows.append((label, figures.number(value), note))
  rows.append(('episodes', figures.number(status.episodes), ''))
  rows.append(('steps/s', figures.number(status.steps_per_second), ''))
  if status.num_restarts:
    rows.append(('restarts', figures.number(status.num_restarts), ''))
  return rows


def _list_learning(status: status_lib.Status) -> list[tuple]:
  rate = figures.number(status.learner_steps_per_second)
  rows = [
    ('updates', figures.number(status.learner_steps), ''),
    ('updates/s', rate, ''),
  ]
  ratio, target = status.samples_per_insert, status.target_samples_per_insert
  if ratio is not None:
    note = '' if target is None else f'target {figures.number(target)}'
    rows.append(('samples/insert', figures.number(ratio), note))
  if status.targets_per_second is not None:
    rows.append(('targets/s', figures.number(status.targets_per_second), ''))
  if status.target_age_steps is not None:
    age = figures.number(status.target_age_steps)
    rows.append(("targets' age", age, 'updates'))
  age, seconds = status.variables_age_steps, status.variables_age_seconds
  notes = [] if seconds is None else [figures.duration(seconds)]
  if age is not None:
    note = ', '.join(['updates', *notes])
    rows.append(("variables' age", figures.number(age), note))
  elif notes:
    rows.append(("variables' age", notes[0], ''))
  return rows


def _make_group(title: str, rows: Iterable[tuple]) -> table.Table:
  grid = table.Table.grid(padding=(0, 2, 0, 0))
  grid.add_column(style=style.LABEL, no_wrap=True)
  grid.add_column(style=style.VALUE, justify='right', no_wrap=True)
  grid.add_column(style=style.NOTE, no_wrap=True)
  grid.add_row(style.make_heading(title))
  for row in rows:
    grid.add_row(*row)
  return grid


def _draw_curve(
  returns: Sequence[float], width: int, glyphs: style.Glyphs
) -> rich_console.RenderableType | None:
  """Draws a curve of the mean return, between its minimum and maximum."""
  finite = [value for value in returns if math.isfinite(value)]
  if len(finite) < 2:
    return None
  low, high = figures.number(min(finite)), figures.number(max(finite))
  room = width - len(low) - len(high) - len('return    ')
  return text.Text.assemble(
    ('return  ', style.LABEL),
    (low + ' ', style.NOTE),
    (sparkline.draw(finite, room, glyphs.blocks), style.GOOD),
    (' ' + high, style.NOTE),
    no_wrap=True,
  )


def _draw_message(message: str) -> text.Text | None:
  return text.Text(message, style=style.WATCH) if message else None
