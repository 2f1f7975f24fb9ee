"""What came of a sweep: a table of its combinations, and their curves."""

import contextlib
import dataclasses
import os
from collections.abc import Sequence

import numpy as np

from repertory.components.settings import SettingError, text_of
from repertory.launch import records
from repertory.launch.sweeps import grid
from repertory.launch.sweeps import manifest as manifest_lib

PLOT = 'returns.png'

_HEADINGS = (
  'combination', 'seeds', 'last return', '95 % interval', 'best return', 'steps'
)  # fmt: skip
_ALL = 'all runs'
_MAX_CURVES = 10


@dataclasses.dataclass(frozen=True)
class Row:
  """What a combination came to, over those of its seeds that are done.

  Attributes:
    label: By what it differs from others.
    environment: Name of the environment.
    runs: Those that are done, one for each seed.
    mean: Mean over seeds of the last evaluation's mean return.
    interval: Where that mean lies, at a confidence of 95 %; NaN with one seed.
    best: Mean over seeds of the best evaluation's.
    steps: Environment steps that each of them has taken, at least.
  """

  label: str
  environment: str
  runs: Sequence[records.Run]
  mean: float
  interval: records.aggregates.Interval
  best: float
  steps: int


def tabulate(manifest: manifest_lib.Manifest) -> list[Row]:
  """Returns a row for each combination that was evaluated, the best first.

  Environments come one after another, for their returns do not compare.
  """
  members: dict[str, list[records.Run]] = {}
  for path, code in manifest.codes.items():
    if code == 0:
      run = records.read(os.path.join(manifest.directory, path))
      if run.last and run.best:
        members.setdefault(grid.group_of(path), []).append(run)
  found = []
  for group, runs in members.items():
    label = group or _ALL
    if manifest.is_study:
      chosen = manifest.groups[group].items()
      label = ' '.join([group, *map(_tell, chosen)])
    found.append(_make_row(label, runs))
  return sorted(found, key=lambda row: (row.environment, -row.mean))


def _tell(chosen: tuple[str, str]) -> str:
  """Returns what a trial chose, with numbers that are short."""
  name, text = chosen
  with contextlib.suppress(ValueError):
    text = f'{float(text):.4g}' if '.' in text else text
  return f'{name.removeprefix("config.")}={text}'


def _make_row(label: str, runs: Sequence[records.Run]) -> Row:
  last = np.array([run.last.episode_return for run in runs if run.last])
  best = np.array([run.best.episode_return for run in runs if run.best])
  mean = records.aggregates.mean
  return Row(
    label,
    environment=runs[0].environment or '',
    runs=runs,
    mean=float(mean(last)),
    interval=records.aggregates.bootstrap_interval(last, mean),
    best=float(mean(best)),
    steps=min(run.steps or 0 for run in runs),
  )


def write(rows: Sequence[Row]) -> str:
  """Returns a table for the eye, without a line break at its end."""
  has_several = len({row.environment for row in rows}) > 1
  lines = [list(_HEADINGS), *map(_cells, rows)]
  for line, name in zip(lines, ['environment', *(r.environment for r in rows)]):
    if has_several:
      line.insert(1, name)
  widths = [max(map(len, column)) for column in zip(*lines)]
  return '\n'.join(
    '  '.join(
      [
        cell.ljust(width) if i == 0 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(line, widths))
      ]
    ).rstrip()
    for line in lines
  )


def _cells(row: Row) -> list[str]:
  wording = records.wording
  return [
    wording.text(row.label),
    str(len(row.runs)),
    wording.number(row.mean),
    wording.interval(row.interval),
    wording.number(row.best),
    f'{row.steps:,}',
  ]


def plot(rows: Sequence[Row], directory: str) -> str:
  """Draws the evaluations over steps; says where that is, or why not.

  Args:
    rows: The best first; of each environment only so many are drawn as can be
      told apart.
    directory: The sweep's.
  """
  drawn: list[Row] = []
  for row in rows:
    peers = [one for one in drawn if one.environment == row.environment]
    if len(peers) < _MAX_CURVES:
      drawn.append(row)
  path = os.path.join(directory, PLOT)
  try:
    records.plots.plot([run for row in drawn for run in row.runs], path)
  except (ImportError, OSError, SettingError) as error:
    return f'none: {text_of(error)}'
  return (
    path if len(drawn) == len(rows) else f'{path}, of the best {len(drawn)}'
  )
