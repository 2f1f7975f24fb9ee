"""Layout of the dashboard, and of its lines where there is no terminal.

Colors are the terminal's own, to suit light and dark ones.
"""

import re
from collections.abc import Iterable, Sequence

from rich import columns, panel, progress_bar, table, text
from rich import console as rich_console

from repertory.components.loggers import figures
from repertory.components.loggers import status as status_lib

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
    learners += f' ({figures.number(status.learners_distance)} from their mean)'
  # Two groups of metrics, side by side if there is room.
  metrics = [
    _draw_group('acting', _list_acting(status)),
    _draw_group('learning', _list_learning(status)),
  ]
  sections = [
    _draw_progress(status),
    columns.Columns(filter(None, metrics), expand=True, equal=True),
    _draw_group('replay', _list_tables(status)),
    _draw_group('inference (wait + run + transport)', _list_inference(status)),
    _draw_group(learners, _list_learners(status)),
    _draw_group('nodes', _list_nodes(status)),
    _draw_group('hosts', _list_hosts(status)),
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
    parts.append(f'after {figures.duration(status.elapsed_seconds)}')
  else:
    if status.steps_per_second:
      parts.append(f'{figures.number(status.steps_per_second)} steps/s')
    if status.seconds_left is not None:
      parts.append(f'{figures.duration(status.seconds_left)} left')
  if status.num_restarts:
    plural = 's' if status.num_restarts > 1 else ''
    parts.append(f'{status.num_restarts} restart{plural}')
  starts = [nodes for _, nodes, duration in _list_nodes(status) if duration]
  if starts and not is_last:
    parts.append(f'starting: {"; ".join(starts)}')
  return ', '.join(parts)


def _draw_progress(status: status_lib.Status) -> table.Table:
  """Draws the progress and the time."""
  clock = figures.duration(status.elapsed_seconds)
  if status.seconds_left is not None:
    clock += f', {figures.duration(status.seconds_left)} left'
  steps = figures.number(status.steps)
  grid = table.Table.grid(expand=True, padding=(0, 1))
  grid.add_column(ratio=1)
  grid.add_column(justify='right')
  if status.max_steps:
    steps += f' of {figures.number(status.max_steps)}'
    bar = progress_bar.ProgressBar(
      status.max_steps, status.steps, complete_style=_ACCENT
    )
    # Rounded down, so that 100 % means the end.
    percent = min(100, 100 * status.steps // status.max_steps)
    grid.add_row(bar, f'{percent} %')
  grid.add_row(f'{steps} steps', clock)
  return grid


# Rows are a name, a value and notes.


def _list_acting(status: status_lib.Status) -> Iterable[Sequence[str]]:
  if status.mean_return is not None:
    note = f'mean of {status.num_returns}'
    yield 'return', figures.number(status.mean_return), note
  for name, value, steps in (
    ('evaluation', status.evaluation_return, status.evaluation_steps),
    ('best', status.best_return, status.best_steps),
  ):
    if value is not None:
      note = f'at {figures.number(steps or 0)} steps'
      yield name, figures.number(value), note
  yield 'episodes', figures.number(status.episodes)
  yield 'steps/s', figures.number(status.steps_per_second)
  if status.num_restarts:
    yield 'restarts', figures.number(status.num_restarts)


def _list_learning(status: status_lib.Status) -> Iterable[Sequence[str]]:
  yield 'updates', figures.number(status.learner_steps)
  yield 'updates/s', figures.number(status.learner_steps_per_second)
  for name, value, note in (
    (
      'samples/insert',
      status.samples_per_insert,
      f'target {figures.number(status.target_samples_per_insert or 0.0)}',
    ),
    ('targets/s', status.targets_per_second, ''),
    ("targets' age", status.target_age_steps, 'updates'),
    (
      "variables' age",
      status.variables_age_steps,
      f'updates, {figures.duration(status.variables_age_seconds or 0.0)}',
    ),
  ):
    if value is not None:
      yield name, figures.number(value), note


def _list_tables(status: status_lib.Status) -> Iterable[Sequence[str]]:
  for row in status.tables:
    size = f'{figures.number(row.size)} of {figures.number(row.max_size)}'
    yield row.name, size, _WAITS[row.blocked]


def _list_inference(status: status_lib.Status) -> Iterable[Sequence[str]]:
  for row in status.inference:
    times = ('wait_ms_p50', 'run_ms_p50', 'transport_ms_p50')
    yield (
      row['node'],
      f'{figures.number(row["rows_per_second"])} rows/s',
      f'{row["rows_per_batch"]:.0f} a batch, {row["fill"]:.0%} full',
      f'{" + ".join(f"{row[time]:.1f}" for time in times)} ms, '
      f'adding {row["adding_share"]:.0%}',
    )


def _list_learners(status: status_lib.Status) -> Iterable[Sequence[str]]:
  for row in status.learners:
    value, age = row['episode_return'], row['age_seconds']
    messages = f'{row["messages_per_second"]:.1f} messages/s'
    yield (
      row['node'],
      f'return {"-" if value is None else figures.number(value)}',
      f'{figures.number(row["version"])} updates',
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
      duration = figures.duration(max(0.0, status.elapsed_seconds - since))
    nodes = ': '.join(filter(None, [_count_equal(names), doing]))
    yield state, nodes, duration


def _list_hosts(status: status_lib.Status) -> Iterable[Sequence[str]]:
  for host in sorted({host for _, host in status.hosts}):
    yield host, _count_equal(name for name, at in status.hosts if at == host)


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
