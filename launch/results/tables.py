"""Tables of runs: as text, CSV or JSON."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from repertory.components.config.settings import SettingError, did_you_mean
from repertory.launch.results import runs as runs_lib
from repertory.launch.results import wording

TEXT, CSV, JSON = 'text', 'csv', 'json'
FORMATS = (TEXT, CSV, JSON)

COLUMNS: tuple[str, ...] = (
  'directory',
  'agent',
  'reward_model',
  'environment',
  'seed',
  'topology',
  'data',
  'steps',
  'max_steps',
  'last_return',
  'best_return',
  'state',
  'when',
  'why',
)

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
  name = sort.removeprefix('-')
  if name not in COLUMNS:
    raise SettingError(
      'sort',
      f'must be one of {", ".join(COLUMNS)}, with - before it for descending '
      f'order; got {sort!r}.{did_you_mean(name, COLUMNS)}',
    )
  found = sorted(map(_row, runs), key=lambda row: row['directory'])
  known = [row for row in found if row[name] is not None]
  known.sort(key=lambda row: row[name], reverse=name != sort)
  return known + [row for row in found if row[name] is None]


def table(
  runs: Sequence[runs_lib.RunRecord],
  sort: str = 'directory',
  format: str = TEXT,
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
  if format not in FORMATS:
    raise SettingError(
      'format',
      f'must be one of {", ".join(FORMATS)}; got {format!r}.'
      f'{did_you_mean(format, FORMATS)}',
    )
  found = rows(runs, sort)
  if format == JSON:
    return json.dumps([_plain(row) for row in found], indent=2)
  if format == CSV:
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator='\n')
    writer.writeheader()
    writer.writerows(
      {
        name: wording.text(value) if isinstance(value, str) else value
        for name, value in _plain(row).items()
      }
      for row in found
    )
    return file.getvalue().rstrip('\n')
  return _align([_texts(row) for row in found])


def _row(run: runs_lib.RunRecord) -> dict[str, Any]:
  return {
    'directory': run.directory,
    'agent': run.agent,
    'reward_model': run.reward_model,
    'environment': run.environment,
    'seed': run.seed,
    'topology': run.topology,
    'data': ', '.join(run.data) or None,
    'steps': run.steps,
    'max_steps': run.max_steps,
    'last_return': run.last.episode_return if run.last else None,
    'best_return': run.best.episode_return if run.best else None,
    'state': run.state,
    'when': run.ended or run.begun,
    'why': run.why or None,
  }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
  when = row['when'] and row['when'].isoformat()
  return {**row, 'when': when}


def _texts(row: dict[str, Any]) -> dict[str, str]:
  """Formats the cells of a row as text."""
  texts = {
    name: wording.NOTHING if value is None else wording.text(value)
    for name, value in row.items()
  }
  for name in ('last_return', 'best_return'):
    if row[name] is not None:
      texts[name] = wording.number(row[name])
  texts['steps'] = wording.steps(row['steps'], row['max_steps'])
  texts['when'] = wording.time(row['when'])
  for name in _RARE:
    texts[name] = wording.text(row[name] or '')
  return texts


def _align(rows_of_text: Sequence[dict[str, str]]) -> str:
  """Aligns columns under their names, without empty rare columns."""
  names = [
    name
    for name in COLUMNS
    if name not in ('max_steps', *_RARE)
    or (name in _RARE and any(row[name] for row in rows_of_text))
  ]
  widths = {
    name: max(map(len, [name, *(row[name] for row in rows_of_text)]))
    for name in names
  }
  lines = []
  for row in [{name: name.replace('_', ' ') for name in names}, *rows_of_text]:
    cells = [
      row[name].rjust(widths[name])
      if name in _NUMBERS
      else row[name].ljust(widths[name])
      for name in names
    ]
    lines.append('  '.join(cells).rstrip())
  return '\n'.join(lines)
