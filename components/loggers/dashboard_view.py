"""Layout of the dashboard, and of its lines where there is no terminal.

Colors are the terminal's own, to suit light and dark ones.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import columns, panel, progress_bar, table, text
from rich import console as rich_console

from repertory.components.loggers import figures
from repertory.components.loggers import status as status_lib

_number, _duration = figures.number, figures.duration

_ACCENT, _WATCH = 'cyan', 'yellow'
_MAX_WIDTH = 100

# The most urgent first.
_STATE_STYLES = {
  'failed': 'bold red',
  'restarting': _WATCH,
  'starting': _WATCH,
  'running': 'green',
  'done': 'dim',
}
_WAITS = {'': '', 'insert': 'inserts wait', 'sample': 'samples wait'}


def draw(status: status_lib.Status) -> panel.Panel:
  """Draws a status as one panel, as wide as the terminal up to a limit."""
  learners = 'learners'
  if status.learners_distance is not None:
    learners += f' ({_number(status.learners_distance)} from their mean)'
  sections = [
    _draw_progress(status),
    _draw_metrics(status),
    *(
      _draw_group(heading, rows)
      for heading, rows in (
        ('replay', map(_describe_table, status.tables)),
        (
          'inference (wait + run + transport)',
          map(_describe_server, status.inference),
        ),
        (learners, map(_describe_learner, status.learners)),
        ('nodes', _list_nodes(status)),
      )
    ),
    text.Text(status.message, style=_WATCH) if status.message else None,
  ]
  grid = table.Table.grid(expand=True)
  for section in filter(None, sections):
    if grid.row_count:
      grid.add_row('')
    grid.add_row(section)
  return panel.Panel(
    grid,
    title=text.Text(f' {status.title} ', style='bold'),
    title_align='left',
    border_style=_ACCENT,
    width=_MAX_WIDTH,
  )


def describe(status: status_lib.Status, is_last: bool) -> str:
  """Summarizes a status in one line."""
  of_all = '' if status.max_steps is None else f' of {status.max_steps:,}'
  parts = [f'{status.steps:,}{of_all} steps']
  if status.mean_return is not None:
    parts.append(f'return {status.mean_return:.4g}')
  if status.evaluation_return is not None:
    parts.append(f'evaluation {status.evaluation_return:.4g}')
  if is_last:
    parts.append(f'after {_duration(status.elapsed_seconds)}')
  else:
    if status.steps_per_second:
      parts.append(f'{_number(status.steps_per_second)} steps/s')
    if status.seconds_left is not None:
      parts.append(f'{_duration(status.seconds_left)} left')
  if status.num_restarts:
    plural = 's' if status.num_restarts > 1 else ''
    parts.append(f'{status.num_restarts} restart{plural}')
  starts = [nodes for _, nodes, duration in _list_nodes(status) if duration]
  if starts and not is_last:
    parts.append(f'starting: {"; ".join(starts)}')
  return ', '.join(parts)


def _draw_progress(status: status_lib.Status) -> table.Table:
  """Draws the progress and the time."""
  clock = _duration(status.elapsed_seconds)
  if status.seconds_left is not None:
    clock += f', {_duration(status.seconds_left)} left'
  steps = _number(status.steps)
  grid = table.Table.grid(expand=True, padding=(0, 1))
  grid.add_column(ratio=1)
  grid.add_column(justify='right')
  if status.max_steps:
    steps += f' of {_number(status.max_steps)}'
    bar = progress_bar.ProgressBar(
      status.max_steps, status.steps, complete_style=_ACCENT
    )
    # Rounded down, so that 100 % means the end.
    percent = min(100, 100 * status.steps // status.max_steps)
    grid.add_row(bar, f'{percent} %')
  grid.add_row(f'{steps} steps', clock)
  return grid


def _draw_metrics(status: status_lib.Status) -> columns.Columns:
  """Draws two groups of metrics, side by side if there is room."""
  acting = [
    ('return', status.mean_return, f'mean of {status.num_returns}'),
    *(
      (name, value, f'at {_number(steps or 0)} steps')
      for name, value, steps in (
        ('evaluation', status.evaluation_return, status.evaluation_steps),
        ('best', status.best_return, status.best_steps),
      )
    ),
    ('episodes', status.episodes, ''),
    ('steps/s', status.steps_per_second, ''),
    ('restarts', status.num_restarts, ''),
  ]
  target = _number(status.target_samples_per_insert or 0.0)
  age = _duration(status.variables_age_seconds or 0.0)
  learning = [
    ('updates', status.learner_steps, ''),
    ('updates/s', status.learner_steps_per_second, ''),
    ('samples/insert', status.samples_per_insert, f'target {target}'),
    ('targets/s', status.targets_per_second, ''),
    ("targets' age", status.target_age_steps, 'updates'),
    ("variables' age", status.variables_age_steps, f'updates, {age}'),
  ]
  groups = []
  for heading, metrics in (('acting', acting), ('learning', learning)):
    known = [(n, _number(v), note) for n, v, note in metrics if v is not None]
    groups.append(_draw_group(heading, known))
  return columns.Columns(groups, expand=True, equal=True)


# Rows are a name, a value and notes.


def _describe_table(row: status_lib.TableStatus) -> Sequence[str]:
  size = f'{_number(row.size)} of {_number(row.max_size)}'
  return row.name, size, _WAITS[row.blocked]


def _describe_server(row: Mapping[str, Any]) -> Sequence[str]:
  times = ('wait_ms_p50', 'run_ms_p50', 'transport_ms_p50')
  return (
    row['node'],
    f'{_number(row["rows_per_second"])} rows/s',
    f'{row["rows_per_batch"]:.0f} a batch, {row["fill"]:.0%} full',
    f'{" + ".join(f"{row[time]:.1f}" for time in times)} ms, '
    f'adding {row["adding_share"]:.0%}',
  )


def _describe_learner(row: Mapping[str, Any]) -> Sequence[str]:
  value, age = row['episode_return'], row['age_seconds']
  messages = f'{row["messages_per_second"]:.1f} messages/s'
  return (
    row['node'],
    f'return {"-" if value is None else _number(value)}',
    f'{_number(row["version"])} updates',
    messages if age is None else f'{messages}, {1000 * age:.0f} ms old',
  )


def _list_nodes(status: status_lib.Status) -> Iterable[Sequence[str]]:
  """Yields states and nodes; starting ones with their longest duration."""
  starts = {one.name: one for one in status.starts}
  groups: dict[tuple[str, str], list[str]] = {}
  for name, state in status.nodes:
    doing = starts[name].doing if name in starts else ''
    groups.setdefault((state, doing), []).append(name)
  urgency = list(_STATE_STYLES)
  for (state, doing), names in sorted(
    groups.items(), key=lambda group: urgency.index(group[0][0])
  ):
    duration = ''
    if names[0] in starts:
      since = min(starts[name].since_seconds for name in names)
      duration = _duration(max(0.0, status.elapsed_seconds - since))
    nodes = ': '.join(filter(None, [_count_equal(names), doing]))
    yield state, nodes, duration


def _draw_group(
  heading: str, rows: Iterable[Sequence[str]]
) -> rich_console.RenderableType | None:
  """Draws rows of a name, a value and notes; None if there are none."""
  grid = table.Table.grid(padding=(0, 2, 0, 0))
  grid.add_column(no_wrap=True, max_width=24, style='dim')
  grid.add_column(style='bold')
  for name, *cells in rows:
    style = _STATE_STYLES.get(name, '')
    grid.add_row(text.Text(name, style=style), *map(text.Text, cells))
  if not grid.row_count:
    return None
  return rich_console.Group(text.Text(heading, style=f'bold {_ACCENT}'), grid)


def _count_equal(names: Iterable[str]) -> str:
  """Joins names, equal ones but for a number counted: `actor ×4`."""
  kinds: dict[str, list[str]] = {}
  for name in names:
    kind = re.sub(r'/\d+$', '', name)
    kinds.setdefault(kind, []).append(name)
  return ', '.join(
    f'{kind} ×{len(members)}' if len(members) > 1 else members[0]
    for kind, members in kinds.items()
  )
