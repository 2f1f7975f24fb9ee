"""Layout of the dashboard, and of its lines where there is no terminal.

Colors are the terminal's own, to suit light and dark ones.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

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
  # Two groups of metrics, side by side if there is room.
  groups = [
    _make_group('acting', _list_acting(status), 'right'),
    _make_group('learning', _list_learning(status), 'right'),
  ]
  sections = [
    _draw_progress(status),
    columns.Columns(filter(None, groups), expand=True, equal=True),
    _make_group('replay', _list_tables(status)),
    _make_group('inference (wait + run + transport)', _list_inference(status)),
    _make_group(f'learners{distance}', _list_learners(status)),
    _make_group('', _list_nodes(status)),
    _make_group('hosts', _list_hosts(status)),
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
  elif status.steps_per_second:
    parts.append(f'{figures.number(status.steps_per_second)} steps/s')
  if status.seconds_left is not None and not is_last:
    parts.append(f'{figures.duration(status.seconds_left)} left')
  if status.num_restarts:
    plural = 's' if status.num_restarts > 1 else ''
    parts.append(f'{status.num_restarts} restart{plural}')
  notes = _describe_starts(status)
  if notes and not is_last:
    starts = '; '.join(_describe_members(list(notes), notes))
    parts.append(f'starting: {starts}')
  return ', '.join(parts)


def _draw_progress(status: status_lib.Status) -> table.Table:
  """Draws the progress and the time."""
  clock = figures.duration(status.elapsed_seconds)
  left = status.seconds_left
  if left is not None and math.isfinite(left):
    clock += f', {figures.duration(left)} left'
  steps = text.Text.assemble((figures.number(status.steps), VALUE))
  grid = table.Table.grid(expand=True, padding=(0, 1))
  grid.add_column(ratio=1)
  grid.add_column(justify='right')
  if status.max_steps:
    steps.append(f' of {figures.number(status.max_steps)}')
    bar = progress_bar.ProgressBar(
      total=status.max_steps,
      completed=status.steps,
      style='bright_black',
      complete_style=ACCENT,
      finished_style=GOOD,
    )
    # Rounded down, so that 100 % means the end.
    percent = min(100, 100 * status.steps // status.max_steps)
    grid.add_row(bar, text.Text(f'{percent} %', style=VALUE))
  grid.add_row(steps.append(' steps'), clock)
  return grid


def _list_acting(status: status_lib.Status) -> Iterable[tuple]:
  if status.mean_return is not None:
    note = f'mean of {status.num_returns}'
    yield _metric('return', figures.number(status.mean_return), note)
  for label, value, steps in (
    ('evaluation', status.evaluation_return, status.evaluation_steps),
    ('best', status.best_return, status.best_steps),
  ):
    if value is not None:
      note = f'at {figures.number(steps)} steps' if steps is not None else ''
      yield _metric(label, figures.number(value), note)
  yield _metric('episodes', figures.number(status.episodes))
  yield _metric('steps/s', figures.number(status.steps_per_second))
  if status.num_restarts:
    yield _metric('restarts', figures.number(status.num_restarts))


def _list_learning(status: status_lib.Status) -> Iterable[tuple]:
  yield _metric('updates', figures.number(status.learner_steps))
  yield _metric('updates/s', figures.number(status.learner_steps_per_second))
  ratio, target = status.samples_per_insert, status.target_samples_per_insert
  if ratio is not None:
    note = '' if target is None else f'target {figures.number(target)}'
    yield _metric('samples/insert', figures.number(ratio), note)
  if status.targets_per_second is not None:
    yield _metric('targets/s', figures.number(status.targets_per_second))
  if status.target_age_steps is not None:
    age = figures.number(status.target_age_steps)
    yield _metric("targets' age", age, 'updates')
  age, seconds = status.variables_age_steps, status.variables_age_seconds
  notes = [] if seconds is None else [figures.duration(seconds)]
  if age is not None:
    note = ', '.join(['updates', *notes])
    yield _metric("variables' age", figures.number(age), note)
  elif notes:
    yield _metric("variables' age", notes[0])


def _metric(name: str, value: str, note: str = '') -> tuple:
  return name, text.Text(value, VALUE), text.Text(note, NOTE)


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


def _make_group(
  heading: str,
  rows: Iterable[tuple],
  justify: Literal['left', 'right'] = 'left',
) -> rich_console.RenderableType | None:
  """Draws rows of a name and further cells; None if there are none."""
  grid = table.Table.grid(padding=(0, 2, 0, 0))
  grid.add_column(no_wrap=True, max_width=24)
  grid.add_column(no_wrap=justify == 'right', justify=justify)
  for name, *cells in rows:
    name = text.Text(name, style=LABEL) if isinstance(name, str) else name
    grid.add_row(name, *cells)
  if not grid.row_count:
    return None
  if not heading:
    return grid
  title = text.Text(heading, style=f'bold not dim {ACCENT}')
  return rich_console.Group(title, grid)


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
