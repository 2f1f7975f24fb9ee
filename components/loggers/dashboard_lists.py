"""The lists on the dashboard: replay tables, inference servers and nodes."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich import console as rich_console
from rich import table, text

from repertory.components.loggers import dashboard_style as style
from repertory.components.loggers import figures
from repertory.components.loggers import status as status_lib

# States that mean something to the eye, the most urgent first.
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
  """Draws how full each replay table is and whom its limiter holds back."""
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
  """Draws how much each inference server does, and where the time goes."""
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


def draw_nodes(
  status: status_lib.Status, glyphs: style.Glyphs
) -> rich_console.RenderableType | None:
  """Draws one line per state, with equal nodes counted: `actor ×4`.

  Below that are lines for what nodes that start are at.
  """
  if not status.nodes:
    return None
  urgency = list(_STATE_STYLES)
  grid = _draw_groups(
    status.nodes,
    glyphs,
    lambda s: urgency.index(s) if s in urgency else len(urgency) // 2,
    lambda state: text.Text(
      f'{glyphs.bullet} {state}', style=_STATE_STYLES.get(state, '')
    ),
  )
  starts = list_starts(status, glyphs)
  if not starts:
    return grid
  details = table.Table.grid(padding=(0, 2, 0, 0))
  details.add_column(style=style.LABEL, no_wrap=True, max_width=24)
  details.add_column(no_wrap=True)
  for names, start in starts:
    details.add_row(text.Text(names), text.Text(start))
  return rich_console.Group(grid, details)


def list_starts(
  status: status_lib.Status, glyphs: style.Glyphs
) -> list[tuple[str, str]]:
  """Returns who starts, and what they are at and for how long."""
  groups: dict[str, list[status_lib.NodeStart]] = {}
  for start in status.starts:
    groups.setdefault(start.doing, []).append(start)
  listed = []
  for doing, starts in groups.items():
    names = _count_equal((start.name for start in starts), glyphs.times)
    since = min(start.since_seconds for start in starts)
    seconds = figures.duration(max(0.0, status.elapsed_seconds - since))
    listed.append((names, f'{doing}, {seconds}' if doing else seconds))
  return listed


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
) -> table.Table:
  """Draws one line per group, with equal nodes counted.

  Args:
    members: Name and group of each node.
    rank: By what groups are sorted.
    draw: Draws the name of one.
  """
  groups: dict[str, list[str]] = {}
  for name, group in members:
    groups.setdefault(group, []).append(name)
  grid = table.Table.grid(padding=(0, 2, 0, 0))
  grid.add_column(no_wrap=True)
  grid.add_column(ratio=1)
  for group in sorted(groups, key=rank):
    names = _count_equal(groups[group], glyphs.times)
    grid.add_row(draw(group), text.Text(names))
  return grid


def _count_equal(names: Iterable[str], times: str) -> str:
  kinds = {}
  for name in names:
    kind = re.sub(r'[/_:. -]*\d+$', '', name) or name
    kinds.setdefault(kind, []).append(name)
  return ', '.join(
    f'{kind} {times}{len(members)}' if len(members) > 1 else members[0]
    for kind, members in kinds.items()
  )
