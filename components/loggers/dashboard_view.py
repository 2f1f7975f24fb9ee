"""Layout of the dashboard.

Colors are the terminal's own, to suit light and dark ones.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich import columns, panel, progress_bar, table, text
from rich import console as rich_console

from repertory.components.loggers import figures
from repertory.components.loggers import status as status_lib

LABEL, VALUE, NOTE, ACCENT = 'dim', 'bold', 'dim', 'cyan'
GOOD, WATCH, BAD = 'green', 'yellow', 'bold red'

_MAX_WIDTH = 100
_BLOCKS = '▁▂▃▄▅▆▇█'

# Highlighted states, the most urgent first.
_STATE_STYLES = {
  **dict.fromkeys(('failed', 'dead', 'lost', 'stalled', 'error'), BAD),
  **dict.fromkeys(('restarting', 'waiting', 'blocked', 'starting'), WATCH),
  **dict.fromkeys(('running', 'ready', 'serving', 'alive'), GOOD),
  **dict.fromkeys(('done', 'finished', 'stopped'), 'dim'),
}
_WAITS = {'': '', 'insert': 'inserts wait', 'sample': 'samples wait'}


class StatusView:
  """Draws a status as one panel, as wide as the terminal up to a limit."""

  def __init__(self, status: status_lib.Status, returns: Sequence[float] = ()):
    """Stores the status, and the mean returns so far, for the curve."""
    self._status = status
    self._returns = returns

  def __rich_console__(
    self,
    console: rich_console.Console,
    options: rich_console.ConsoleOptions,
  ) -> rich_console.RenderResult:
    """Yields the panel; called by rich."""
    status = self._status
    width = min(options.max_width, _MAX_WIDTH)
    inner = width - 4
    sections = [
      _draw_progress(status),
      _draw_figures(status),
      _draw_curve(self._returns, inner),
      _draw_tables(status),
      _draw_inference(status),
      _draw_learners(status),
      _draw_nodes(status),
      _draw_hosts(status),
      text.Text(status.message, style=WATCH) if status.message else None,
    ]
    grid = make_grid(1)
    for section in filter(None, sections):
      if grid.row_count:
        grid.add_row('')
      grid.add_row(section)
    yield make_panel(grid, status.title, width)


def make_panel(
  content: rich_console.RenderableType, title: str, width: int | None = None
) -> panel.Panel:
  """Returns a panel with a title."""
  return panel.Panel(
    content,
    title=text.Text(f' {title} ', style='bold'),
    title_align='left',
    border_style=ACCENT,
    padding=(0, 1),
    width=width,
  )


def make_grid(num_wide: int = 0, **settings: Any) -> table.Table:
  """Returns a grid of `num_wide` equal columns over the whole width."""
  grid = table.Table.grid(expand=bool(num_wide), **settings)
  for _ in range(num_wide):
    grid.add_column(ratio=1)
  return grid


def make_bar(
  done: int, total: int, width: int | None = None
) -> progress_bar.ProgressBar:
  """Returns a progress bar that fills the available width by default."""
  return progress_bar.ProgressBar(
    total=total,
    completed=done,
    width=width,
    style='bright_black',
    complete_style=ACCENT,
    finished_style=GOOD,
  )


def draw_sparkline(values: Sequence[float], width: int) -> str:
  """Draws a series between its minimum and maximum, in a line of text.

  Args:
    values: The finite series, not empty.
    width: Maximum number of characters. A longer series is averaged in nearly
      equal pieces.
  """
  num = max(1, min(width, len(values)))
  starts = np.arange(num) * len(values) // num
  sums = np.add.reduceat(np.asarray(values, np.float64), starts)
  means = sums / np.diff(starts, append=len(values))
  low, high = means.min(), means.max()
  scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
  return ''.join(_BLOCKS[round((mean - low) * scale)] for mean in means)


def list_starts(status: status_lib.Status) -> list[str]:
  """Returns starting nodes, with their activities and durations."""
  notes = _describe_starts(status)
  return _describe_members(list(notes), notes)


def _draw_progress(status: status_lib.Status) -> rich_console.RenderableType:
  """Draws the progress and the time."""
  clock = figures.duration(status.elapsed_seconds)
  left = status.seconds_left
  if left is not None and math.isfinite(left):
    clock += f', {figures.duration(left)} left'
  steps = text.Text.assemble((figures.number(status.steps), VALUE))
  if status.max_steps is not None:
    steps.append(f' of {figures.number(status.max_steps)}')
  steps.append(' steps')
  counts = table.Table.grid(expand=True)
  counts.add_column()
  counts.add_column(justify='right')
  counts.add_row(steps, clock)
  if not status.max_steps:
    return counts
  bar = make_grid(1, padding=(0, 1))
  bar.add_column(justify='right')
  # Rounded down, so that 100 % means the end.
  percent = min(100, 100 * status.steps // status.max_steps)
  bar.add_row(
    make_bar(status.steps, status.max_steps),
    text.Text(f'{percent} %', style=VALUE),
  )
  return rich_console.Group(bar, counts)


def _draw_figures(status: status_lib.Status) -> columns.Columns:
  """Draws two groups of metrics, side by side if there is room."""
  groups = [
    _make_group('acting', _list_acting(status)),
    _make_group('learning', _list_learning(status)),
  ]
  return columns.Columns(groups, expand=True, equal=True)


def _list_acting(status: status_lib.Status) -> list[tuple[str, str, str]]:
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


def _list_learning(status: status_lib.Status) -> list[tuple[str, str, str]]:
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
  grid = make_grid(padding=(0, 2, 0, 0))
  grid.add_column(style=LABEL, no_wrap=True)
  grid.add_column(style=VALUE, justify='right', no_wrap=True)
  grid.add_column(style=NOTE, no_wrap=True)
  grid.add_row(_make_heading(title))
  for row in rows:
    grid.add_row(*row)
  return grid


def _draw_curve(returns: Sequence[float], width: int) -> text.Text | None:
  """Draws a curve of the mean return, between its minimum and maximum."""
  finite = [value for value in returns if math.isfinite(value)]
  if len(finite) < 2:
    return None
  low, high = figures.number(min(finite)), figures.number(max(finite))
  room = width - len(low) - len(high) - len('return    ')
  return text.Text.assemble(
    ('return  ', LABEL),
    (low + ' ', NOTE),
    (draw_sparkline(finite, room), GOOD),
    (' ' + high, NOTE),
    no_wrap=True,
  )


def _draw_tables(
  status: status_lib.Status,
) -> rich_console.RenderableType | None:
  """Draws each replay table's size, and whether its rate limiter blocks."""
  rows = []
  for row in status.tables:
    size = text.Text.assemble(
      (figures.number(row.size), VALUE), f' of {figures.number(row.max_size)}'
    )
    rows.append((row.name, size, text.Text(_WAITS[row.blocked], style=WATCH)))
  return _draw_rows('replay', rows)


def _draw_inference(
  status: status_lib.Status,
) -> rich_console.RenderableType | None:
  """Draws each inference server's throughput and latencies."""
  rows = [
    (
      row.name,
      text.Text.assemble(
        (figures.number(row.rows_per_second), VALUE), ' rows/s'
      ),
      f'{row.rows_per_batch:.0f} a batch, {row.fill:.0%} full',
      f'{row.wait_ms:.1f} + {row.run_ms:.1f} + {row.transport_ms:.1f} ms'
      f', adding {row.adding_share:.0%}',
    )
    for row in status.inference
  ]
  return _draw_rows('inference (wait + run + transport)', rows)


def _draw_learners(
  status: status_lib.Status,
) -> rich_console.RenderableType | None:
  """Draws the metrics of each of several learners, and their distance."""
  rows = []
  for row in status.learners:
    mean_return = '-'
    if row.mean_return is not None:
      mean_return = figures.number(row.mean_return)
    mean_return = text.Text.assemble('return ', (mean_return, VALUE))
    updates = f'{figures.number(row.learner_steps)} updates'
    gossip = f'{row.messages_per_second:.1f} messages/s'
    if row.age_seconds is not None:
      gossip += f', {1000 * row.age_seconds:.0f} ms old'
    rows.append((row.name, mean_return, updates, gossip))
  heading = 'learners'
  if status.learners_distance is not None:
    distance = figures.number(status.learners_distance)
    heading += f' ({distance} from their mean)'
  return _draw_rows(heading, rows)


def _draw_rows(
  heading: str, rows: Sequence[tuple]
) -> rich_console.RenderableType | None:
  """Draws rows of a name and further cells; None if there are none."""
  if not rows:
    return None
  grid = make_grid(padding=(0, 2, 0, 0))
  grid.add_column(no_wrap=True, max_width=24)
  for name, *cells in rows:
    name = text.Text(name, style=LABEL) if isinstance(name, str) else name
    grid.add_row(name, *cells)
  if not heading:
    return grid
  return rich_console.Group(_make_heading(heading), grid)


def _make_heading(name: str) -> text.Text:
  return text.Text(name, style=f'bold not dim {ACCENT}')


def _draw_nodes(
  status: status_lib.Status,
) -> rich_console.RenderableType | None:
  """Draws one line per state and activity, equal nodes counted: `actor ×4`."""
  urgency, notes = list(_STATE_STYLES), _describe_starts(status)
  groups = _group(status.nodes)
  rows = []
  for state in sorted(
    groups, key=lambda s: urgency.index(s) if s in urgency else len(urgency) / 2
  ):
    label = text.Text(f'● {state}', style=_STATE_STYLES.get(state, ''))
    for line in _describe_members(groups[state], notes):
      rows.append((label, text.Text(line)))
  return _draw_rows('', rows)


def _draw_hosts(
  status: status_lib.Status,
) -> rich_console.RenderableType | None:
  """Draws one line per host, with its nodes."""
  groups = sorted(_group(status.hosts).items())
  return _draw_rows('hosts', [(one, _count_equal(n)) for one, n in groups])


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
  """Returns the first entries of pairs by their second."""
  groups: dict[str, list[str]] = {}
  for name, group in pairs:
    groups.setdefault(group, []).append(name)
  return groups


def _describe_starts(status: status_lib.Status) -> dict[str, str]:
  """Returns activity and longest duration of starting nodes, by name."""
  since: dict[str, float] = {}
  for one in status.starts:
    since[one.doing] = min(one.since_seconds, since.get(one.doing, math.inf))
  notes = {}
  for one in status.starts:
    seconds = max(0.0, status.elapsed_seconds - since[one.doing])
    notes[one.name] = ', '.join(
      filter(None, [one.doing, figures.duration(seconds)])
    )
  return notes


def _describe_members(
  names: Sequence[str], notes: Mapping[str, str]
) -> list[str]:
  """Returns a line for all nodes of each note."""
  return [
    ': '.join(filter(None, [_count_equal(alike), note]))
    for note, alike in _group((n, notes.get(n, '')) for n in names).items()
  ]


def _count_equal(names: Iterable[str]) -> str:
  kinds = _group((n, re.sub(r'[/_:. -]*\d+$', '', n) or n) for n in names)
  return ', '.join(
    f'{kind} ×{len(members)}' if len(members) > 1 else members[0]
    for kind, members in kinds.items()
  )
