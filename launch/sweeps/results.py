"""Results of a sweep: a table of its combinations, and learning curves."""

import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence

import numpy as np

from repertory.components.config.settings import SettingError, text_of
from repertory.launch import results
from repertory.launch.sweeps import manifest as manifest_lib

PLOT = 'returns.png'

_HEADINGS = (
  'combination', 'seeds', 'last return', '95 % interval', 'best return', 'steps'
)  # fmt: skip
_ALL = 'all runs'
_MAX_CURVES = 10


@dataclasses.dataclass(frozen=True)
class Row:
  """Results of a combination, over its finished seeds.

  Attributes:
    label: Settings that distinguish it from others.
    environment: Name of the environment.
    runs: Finished runs, one for each seed.
    mean: Mean over seeds of the last evaluation's mean return.
    interval: 95 % interval of that mean; NaN with one seed.
    best: Mean over seeds of the best evaluation's mean return.
    steps: Least number of environment steps over seeds.
  """

  label: str
  environment: str
  runs: Sequence[results.RunRecord]
  mean: float
  interval: results.aggregates.Interval
  best: float
  steps: int


def tabulate(manifest: manifest_lib.SweepManifest) -> list[Row]:
  """Returns a row for each evaluated combination, the best first.

  Rows are grouped by environment, as returns of several are not comparable.
  """
  members: dict[str, list[results.RunRecord]] = {}
  for path, code in manifest.codes.items():
    run = results.read(os.path.join(manifest.directory, path))
    if code == 0 and run.last:
      members.setdefault(os.path.dirname(path), []).append(run)
  found = []
  for group, runs in members.items():
    label = group or _ALL
    if manifest.is_study:
      label = f'{group} {_describe(manifest.groups[group])}'
    last = np.array([run.evaluations[-1].episode_return for run in runs])
    best = [max(e.episode_return for e in run.evaluations) for run in runs]
    mean = results.aggregates.mean
    found.append(
      Row(
        label,
        environment=runs[0].environment or '',
        runs=runs,
        mean=float(mean(last)),
        interval=results.aggregates.bootstrap_interval(last, mean),
        best=float(mean(best)),
        steps=min(run.steps or 0 for run in runs),
      )
    )
  return sorted(found, key=lambda row: (row.environment, -row.mean))


def _describe(chosen: Mapping[str, object]) -> str:
  """Returns a trial's choices as text, with short numbers."""
  texts = {name: str(value) for name, value in chosen.items()}
  for name, text in texts.items():
    with contextlib.suppress(ValueError):
      texts[name] = f'{float(text):.4g}' if '.' in text else text
  return ' '.join(f'{n.removeprefix("config.")}={t}' for n, t in texts.items())


def write(rows: Sequence[Row]) -> str:
  """Formats rows as a text table, without a final line break."""
  wording = results.wording
  lines: list[list[str]] = [[*_HEADINGS]]
  for row in rows:
    lines.append(
      [
        wording.text(row.label),
        str(len(row.runs)),
        wording.number(row.mean),
        wording.interval(row.interval),
        wording.number(row.best),
        f'{row.steps:,}',
      ]
    )
  if len({row.environment for row in rows}) > 1:
    names = ['environment', *(row.environment for row in rows)]
    for line, name in zip(lines, names):
      line.insert(1, name)
  return wording.align(lines, [i > 0 for i in range(len(lines[0]))])


def plot(rows: Sequence[Row], directory: str) -> str:
  """Plots the evaluations over steps; returns the path, or a reason.

  Args:
    rows: The rows, the best first; at most `_MAX_CURVES` of each environment
      are drawn.
    directory: Directory of the sweep.
  """
  drawn: list[Row] = []
  for row in rows:
    peers = [one for one in drawn if one.environment == row.environment]
    if len(peers) < _MAX_CURVES:
      drawn.append(row)
  path = os.path.join(directory, PLOT)
  try:
    results.plots.plot([run for row in drawn for run in row.runs], path)
  except (ImportError, OSError, SettingError) as error:
    return f'none: {text_of(error)}'
  return (
    path if len(drawn) == len(rows) else f'{path}, of the best {len(drawn)}'
  )
