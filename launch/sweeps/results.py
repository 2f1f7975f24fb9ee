"""Results of a sweep: a table of its combinations, and learning curves."""

import contextlib
import itertools
import os
from collections.abc import Mapping, Sequence

from repertory.components.config.settings import SettingError, text_of
from repertory.launch import results
from repertory.launch.sweeps import manifest as manifest_lib

PLOT = 'returns.png'

_HEADINGS = (
  'combination', 'seeds', 'last return', '95 % interval', 'best return', 'steps'
)  # fmt: skip
_ALL = 'all runs'
_MAX_CURVES = 10


def tabulate(
  manifest: manifest_lib.SweepManifest,
) -> list[results.groups.Score]:
  """Returns a score of each combination, by environment, the best first."""
  members: dict[str, list[results.RunRecord]] = {}
  for path, code in manifest.codes.items():
    run = results.read(os.path.join(manifest.directory, path))
    if code == 0 and run.last:
      members.setdefault(os.path.dirname(path), []).append(run)
  groups = []
  for name, runs in members.items():
    label = name or _ALL
    if manifest.is_study:
      label = f'{name} {_describe(manifest.groups[name])}'
    agent, environment = runs[0].agent or '', runs[0].environment or ''
    groups.append(results.Group(agent, environment, {}, runs, label))
  return sorted(
    results.groups.score(groups),
    key=lambda one: (one.group.environment, -one.last.mean()),
  )


def _describe(chosen: Mapping[str, object]) -> str:
  """Returns a trial's choices as text, with short numbers."""
  texts = {name: str(value) for name, value in chosen.items()}
  for name, text in texts.items():
    with contextlib.suppress(ValueError):
      texts[name] = f'{float(text):.4g}' if '.' in text else text
  return ' '.join(f'{n.removeprefix("config.")}={t}' for n, t in texts.items())


def write(rows: Sequence[results.groups.Score]) -> str:
  """Formats scores as a text table."""
  aggregates, wording = results.aggregates, results.wording
  lines: list[list[str]] = [[*_HEADINGS]]
  for row in rows:
    interval = aggregates.bootstrap_interval(row.last, aggregates.mean)
    lines.append(
      [
        wording.text(row.group.label),
        str(len(row.last)),
        wording.number(row.last.mean()),
        wording.interval(*interval),
        wording.number(row.best.mean()),
        f'{min(run.steps or 0 for run in row.group.runs):,}',
      ]
    )
  if len({row.group.environment for row in rows}) > 1:
    names = ['environment', *(row.group.environment for row in rows)]
    for line, name in zip(lines, names):
      line.insert(1, name)
  return wording.align(lines, [i > 0 for i in range(len(lines[0]))])


def plot(rows: Sequence[results.groups.Score], directory: str) -> str:
  """Plots the best evaluations over steps; returns the path, or a reason."""
  drawn = [
    row.group
    for _, own in itertools.groupby(rows, lambda row: row.group.environment)
    for row in itertools.islice(own, _MAX_CURVES)
  ]
  path = os.path.join(directory, PLOT)
  try:
    results.plots.plot([run for group in drawn for run in group.runs], path)
  except (ImportError, OSError, SettingError) as error:
    return f'none: {text_of(error)}'
  return (
    path if len(drawn) == len(rows) else f'{path}, of the best {len(drawn)}'
  )
