"""Tables of runs: as text, CSV or JSON."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from repertory.components.config import choices
from repertory.components.config.settings import SettingError, did_you_mean
from repertory.launch.results import runs as runs_lib
from repertory.launch.results import wording

FORMATS = ('text', 'csv', 'json')

# Value of each column.
_VALUES: Mapping[str, Callable[[runs_lib.RunRecord], Any]] = {
  'directory': lambda run: run.directory,
  'agent': lambda run: run.agent,
  'reward_model': lambda run: run.reward_model,
  'environment': lambda run: run.environment,
  'seed': lambda run: run.seed,
  'topology': lambda run: run.topology,
  'data': lambda run: ', '.join(run.data) or None,
  'steps': lambda run: run.steps,
  'max_steps': lambda run: run.max_steps,
  'last_return': lambda run: run.last and run.last.episode_return,
  'best_return': lambda run: run.best and run.best.episode_return,
  'state': lambda run: run.state,
  'when': lambda run: run.ended,
  'why': lambda run: run.why or None,
}
COLUMNS = tuple(_VALUES)

# Columns omitted from text if no run has a value.
_RARE = ('reward_model', 'data', 'why')
_NUMBERS = ('seed', 'steps', 'last_return', 'best_return')


def rows(
  runs: Sequence[runs_lib.RunRecord], sort: str = 'directory'
) -> list[dict[str, Any]]:
  """Returns a row of plain values for each run, by the names of `COLUMNS`.

  Args:
    runs: The runs.
    sort: One of `COLUMNS`; '-' before it sorts in descending order. Rows
      without a value always come last.

  Raises:
    SettingError: If there is no such column.
  """
  chosen = sort.removeprefix('-')
  if chosen not in COLUMNS:
    raise SettingError(
      'sort',
      f'must be one of {", ".join(COLUMNS)}, with - before it for descending '
      f'order; got {sort!r}.{did_you_mean(chosen, COLUMNS)}',
    )
  found = [{name: f(run) for name, f in _VALUES.items()} for run in runs]
  found.sort(key=lambda row: row['directory'])
  known = [row for row in found if row[chosen] is not None]
  known.sort(key=lambda row: row[chosen], reverse=chosen != sort)
  return known + [row for row in found if row[chosen] is None]


def table(
  runs: Sequence[runs_lib.RunRecord],
  sort: str = 'directory',
  format: str = 'text',
) -> str:
  """Returns a table with a line for each run, without a final line break.

  Args:
    runs: The runs.
    sort: See `rows`.
    format: 'text', with thousands separators and local time; 'csv' or 'json',
      with plain numbers and time as ISO 8601 in UTC. Characters that cannot
      be printed are escaped.

  Raises:
    SettingError: If sort or format is unknown.
  """
  choices.check('format', format, FORMATS)
  found = rows(runs, sort)
  if format == 'text':
    return _write_text(found)
  for row in found:
    row['when'] = row['when'] and row['when'].isoformat()
  if format == 'json':
    return json.dumps(found, indent=2)
  file = io.StringIO()
  writer = csv.writer(file, lineterminator='\n')
  writer.writerow(COLUMNS)
  for row in found:
    writer.writerow(
      wording.text(v) if isinstance(v, str) else v for v in row.values()
    )
  return file.getvalue().rstrip('\n')


def _write_text(found: Sequence[dict[str, Any]]) -> str:
  names = [
    name
    for name in COLUMNS
    if name != 'max_steps'
    and (name not in _RARE or any(row[name] for row in found))
  ]
  lines = [[name.replace('_', ' ') for name in names]]
  for row in found:
    texts = {}
    for name, value in row.items():
      missing = '' if name in _RARE else wording.NOTHING
      texts[name] = wording.text(missing if value is None else value)
    texts['steps'] = wording.steps(row['steps'], row['max_steps'])
    texts['when'] = wording.time(row['when'])
    for name in ('last_return', 'best_return'):
      texts[name] = wording.number(row[name])
    lines.append([texts[name] for name in names])
  return wording.align(lines, [name in _NUMBERS for name in names])
