"""Layout of the dashboard.

Colors are the terminal's own, to suit light and dark ones.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from rich import columns, panel, progress_bar, table, text
from rich import console as rich_console

from repertory.components.loggers import figures
from repertory.components.loggers import status as status_lib

LABEL, VALUE, NOTE, ACCENT = 'dim', 'bold', 'dim', 'cyan'
GOOD, WATCH, BAD = 'green', 'yellow', 'bold red'

_MAX_WIDTH = 100

# Highlighted states, the most urgent first.
_STATE_STYLES = {
  **dict.fromkeys(('failed', 'dead', 'lost', 'stalled', 'error'), BAD),
  **dict.fromkeys(('restarting', 'waiting', 'blocked', 'starting'), WATCH),
  **dict.fromkeys(('running', 'ready', 'serving', 'alive'), GOOD),
  **dict.fromkeys(('done', 'finished', 'stopped'), 'dim'),
}
_WAITS = {'': '', 'insert': 'inserts wait', 'sample': 'samples wait'}


def draw(status: status_lib.Status) -> panel.Panel:
  """Draws a status as one panel, as wide as the terminal up to a limit."""
  distance = ''
  if status.learners_distance is not None:
    distance = f' ({figures.number(status.learners_distance)} from their mean)'
  sections = [
    _draw_progress(status),
    _draw_figures(status),
    _draw_rows('replay', _list_tables(status)),
    _draw_rows('inference (wait + run + transport)', _list_inference(status)),
    _draw_rows(f'learners{distance}', _list_learners(status)),
    _draw_rows('', _list_nodes(status)),
    _draw_rows('hosts', _list_hosts(status)),
    text.Text(status.message, style=WATCH) if status.message else None,
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
    border_style=ACCENT,
    padding=(0, 1),
    width=_MAX_WIDTH,
  )


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
  bar = table.Table.grid(expand=True, padding=(0, 1))
  bar.add_column(ratio=1)
  bar.add_column(justify='right')
  # Rounded down, so that 100 % means the end.
  percent = min(100, 100 * status.steps // status.max_steps)
  bar.add_row(
    progress_bar.ProgressBar(
      total=status.max_steps,
      completed=status.steps,
      style='bright_black',
      complete_style=ACCENT,
      finished_style=GOOD,
    ),
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
  grid = table.Table.grid(padding=(0, 2, 0, 0))
  grid.add_column(style=LABEL, no_wrap=True)
  grid.add_column(style=VALUE, justify='right', no_wrap=True)
  grid.add_column(style=NOTE, no_wrap=True)
  grid.add_row(_make_heading(title))
  for row in rows:
    grid.add_row(*row)
  return grid


def _list_tables(status: status_lib.Status) -> Iterable[tuple]:
  """Yields each replay table's size, and whether its rate limiter blocks."""
  for row in status.tables:
    size = text.Text.assemble(
      (figures.number(row.size), VALUE), f' of {figures.number(row.max_size)}'
    )
    yield row.name, size, text.Text(_WAITS[row.blocked], style=WATCH)


def _list_inference(status: status_lib.Status) -> Iterable[tuple]:
  """Yields each inference server's throughput and latencies."""
  for row in status.inference:
    rate = figures.number(row.rows_per_second)
    yield (
      row.name,
      text.Text.assemble((rate, VALUE), ' rows/s'),
      f'{row.rows_per_batch:.0f} a batch, {row.fill:.0%} full',
      f'{row.wait_ms:.1f} + {row.run_ms:.1f} + {row.transport_ms:.1f} ms'
      f', adding {row.adding_share:.0%}',
    )


def _list_learners(status: status_lib.Status) -> Iterable[tuple]:
  """Yields the metrics of each of several learners."""
  for row in status.learners:
    value = '-' if row.mean_return is None else figures.number(row.mean_return)
    gossip = f'{row.messages_per_second:.1f} messages/s'
    if row.age_seconds is not None:
      gossip += f', {1000 * row.age_seconds:.0f} ms old'
    yield (
      row.name,
      text.Text.assemble('return ', (value, VALUE)),
      f'{figures.number(row.learner_steps)} updates',
      gossip,
    )


def _draw_rows(
  heading: str, rows: Iterable[tuple]
) -> rich_console.RenderableType | None:
  """Draws rows of a name and further cells; None if there are none."""
  grid = table.Table.grid(padding=(0, 2, 0, 0))
  grid.add_column(no_wrap=True, max_width=24)
  for name, *cells in rows:
    name = text.Text(name, style=LABEL) if isinstance(name, str) else name
    grid.add_row(name, *cells)
  if not grid.row_count:
    return None
  return rich_console.Group(_make_heading(heading), grid) if heading else grid


def _make_heading(name: str) -> text.Text:
  return text.Text(name, style=f'bold not dim {ACCENT}')


def _list_nodes(status: status_lib.Status) -> Iterable[tuple]:
  """Yields a line per state and activity, equal nodes counted: `actor ×4`."""
  urgency, notes = list(_STATE_STYLES), _describe_starts(status)
  groups = _group(status.nodes)
  for state in sorted(
    groups, key=lambda s: urgency.index(s) if s in urgency else len(urgency) / 2
  ):
    label = text.Text(f'● {state}', style=_STATE_STYLES.get(state, ''))
    for line in _describe_members(groups[state], notes):
      yield label, text.Text(line)


def _list_hosts(status: status_lib.Status) -> Iterable[tuple]:
  for host, names in sorted(_group(status.hosts).items()):
    yield host, _count_equal(names)


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
