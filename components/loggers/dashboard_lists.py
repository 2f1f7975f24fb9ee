"""Lists of the dashboard: replay tables, inference servers, learners, nodes."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich import console as rich_console
from rich import table, text

from repertory.components.loggers import dashboard_style as style
from repertory.components.loggers import figures
from repertory.components.loggers import status as status_lib

# Highlighted states, the most urgent first.
_STATE_STYLES = {
  **dict.fromkeys(('failed', 'dead', 'lost', 'stalled', 'error'), style.BAD),
  **dict.fromkeys(
    ('restarting', 'waiting', 'blocked', 'starting'), style.WATCH
  ),
  **dict.fromkeys(('running', 'ready', 'serving', 'alive'), style.GOOD),
  **dict.fromkeys(('done', 'finished', 'stopped'), 'dim'),
}


def draw_tables(
  tables: Sequence[status_lib.TableStatus], width: int
) -> rich_console.RenderableType | None:
  """Draws each replay table's size, and whether its rate limiter blocks."""
  if not tables:
    return None
  has_room = width >= style.SIDE_BY_SIDE_WIDTH
  grid = table.Table.grid(padding=(0, 2, 0, 0))
  grid.add_column(style=style.LABEL, no_wrap=True, max_width=24)
  if has_room:
    grid.add_column()
  grid.add_column(no_wrap=True)
  grid.add_column(style=style.WATCH)
  waits = {'': '', 'insert': 'inserts wait', 'sample': 'samples wait'}
  for row in tables:
    size = text.Text.assemble(
      (figures.number(row.size), style.VALUE),
      f' of {figures.number(row.max_size)}',
    )
    cells = [text.Text(row.name), size, waits[row.blocked]]
    if has_room:
      cells.insert(1, style.make_bar(row.size, row.max_size, width=16))
    grid.add_row(*cells)
  return rich_console.Group(style.make_heading('replay'), grid)


def draw_inference(
  servers: Sequence[status_lib.InferenceStatus],
) -> rich_console.RenderableType | None:
  """Draws each inference server's throughput and latencies."""
  if not servers:
    return None
  grid = table.Table.grid(padding=(0, 2, 0, 0))
  grid.add_column(style=style.LABEL, no_wrap=True, max_width=24)
  for _ in range(3):
    grid.add_column(no_wrap=True)
  for row in servers:
    rate = text.Text.assemble(
      (figures.number(row.rows_per_second), style.VALUE), ' rows/s'
    )
    batch = f'{row.rows_per_batch:.0f} a batch, {row.fill:.0%} full'
    times = (
      f'{row.wait_ms:.1f} + {row.run_ms:.1f} + {row.transport_ms:.1f} ms'
      f', adding {row.adding_share:.0%}'
    )
    grid.add_row(text.Text(row.name), rate, batch, times)
  return rich_console.Group(
    style.make_heading('inference (wait + run + transport)'), grid
  )


def draw_learners(
  status: status_lib.Status,
) -> rich_console.RenderableType | None:
  """Draws the metrics of each of several learners, and their distance."""
  if not status.learners:
    return None
  grid = table.Table.grid(padding=(0, 2, 0, 0))
  grid.add_column(style=style.LABEL, no_wrap=True, max_width=24)
  for _ in range(4):
    grid.add_column(no_wrap=True)
  for row in status.learners:
    mean_return = text.Text.assemble(
      'return ', (_number_or_dash(row.mean_return), style.VALUE)
    )
    evaluation = f'evaluation {_number_or_dash(row.evaluation_return)}'
    updates = f'{figures.number(row.learner_steps)} updates'
    gossip = f'{row.messages_per_second:.1f} messages/s'
    if row.age_seconds is not None:
      gossip += f', {1000 * row.age_seconds:.0f} ms old'
    grid.add_row(text.Text(row.name), mean_return, evaluation, updates, gossip)
  heading = 'learners'
  if status.learners_distance is not None:
    heading += (
      f' ({figures.number(status.learners_distance)} from their mean, bound '
      f'{figures.number(status.learners_distance_bound or 0.0)})'
    )
  return rich_console.Group(style.make_heading(heading), grid)


def _number_or_dash(value: float | None) -> str:
  return '-' if value is None else figures.number(value)


def draw_nodes(
  status: status_lib.Status, glyphs: style.Glyphs
) -> rich_console.RenderableType | None:
  """Draws one line per state, with equal nodes counted: `actor ×4`.

  Starting nodes have one line for each activity.
  """
  if not status.nodes:
    return None
  urgency = list(_STATE_STYLES)
  return _draw_groups(
    status.nodes,
    glyphs,
    lambda s: urgency.index(s) if s in urgency else len(urgency) // 2,
    lambda state: text.Text(
      f'{glyphs.bullet} {state}', style=_STATE_STYLES.get(state, '')
    ),
    _describe_starts(status),
  )


def list_starts(status: status_lib.Status, times: str) -> list[str]:
  """Returns starting nodes, with their activities and durations.

  Args:
    times: Sign before a number of equal nodes.
  """
  notes = _describe_starts(status)
  return _describe_members(list(notes), times, notes)


def _describe_starts(status: status_lib.Status) -> dict[str, str]:
  """Returns the activities of starting nodes and their durations, by name.

  Nodes with the same activity share the longest duration.
  """
  since: dict[str, float] = {}
  for one in status.starts:
    since[one.doing] = min(one.since_seconds, since.get(one.doing, math.inf))
  notes = {}
  for one in status.starts:
    seconds = max(0.0, status.elapsed_seconds - since[one.doing])
    duration = figures.duration(seconds)
    notes[one.name] = f'{one.doing}, {duration}' if one.doing else duration
  return notes


def draw_hosts(
  hosts: Sequence[tuple[str, str]], glyphs: style.Glyphs
) -> rich_console.Group | None:
  """Draws one line per host, with its nodes."""
  if not hosts:
    return None
  grid = _draw_groups(hosts, glyphs, lambda host: host, text.Text)
  return rich_console.Group(style.make_heading('hosts'), grid)


def _draw_groups(
  members: Sequence[tuple[str, str]],
  glyphs: style.Glyphs,
  rank: Callable[[str], Any],
  draw: Callable[[str], text.Text],
  notes: Mapping[str, str] | None = None,
) -> table.Table:
  """Draws one line per group, with equal nodes counted.

  Args:
    members: Name and group of each node.
    rank: Sort key of groups.
    draw: Draws the name of a group.
    notes: Notes on nodes, by name; nodes with different notes get separate
      lines.
  """
  groups: dict[str, list[str]] = {}
  for name, group in members:
    groups.setdefault(group, []).append(name)
  grid = table.Table.grid(padding=(0, 2, 0, 0))
  grid.add_column(no_wrap=True)
  grid.add_column(ratio=1)
  for group in sorted(groups, key=rank):
    for line in _describe_members(groups[group], glyphs.times, notes or {}):
      grid.add_row(draw(group), text.Text(line))
  return grid


def _describe_members(
  names: Sequence[str], times: str, notes: Mapping[str, str]
) -> list[str]:
  """Returns a line for all nodes of each note."""
  by_note: dict[str, list[str]] = {}
  for name in names:
    by_note.setdefault(notes.get(name, ''), []).append(name)
  return [
    ': '.join(filter(None, [_count_equal(alike, times), note]))
    for note, alike in by_note.items()
  ]


def _count_equal(names: Iterable[str], times: str) -> str:
  kinds = {}
  for name in names:
    kind = re.sub(r'[/_:. -]*\d+$', '', name) or name
    kinds.setdefault(kind, []).append(name)
  return ', '.join(
    f'{kind} {times}{len(members)}' if len(members) > 1 else members[0]
    for kind, members in kinds.items()
  )
