"""Report on runs: one self-contained page of HTML."""

import base64
import dataclasses
import datetime
import json
import os
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repertory import __version__
from repertory.components.config import regular_files
from repertory.launch.results import (
  aggregates,
  finding,
  plots,
  throughput,
  wording,
)
from repertory.launch.results import curves as curves_lib
from repertory.launch.results import groups as groups_lib
from repertory.launch.results import runs as runs_lib
from repertory.launch.results import scores as scores_lib

ENDINGS = ('.html', '.htm')

_MAX_NAMES = 3  # In the heading; if there are more, it shows their number.
_INTERVAL = f'{aggregates.CONFIDENCE:.0%} interval'
_STATISTICS = {'mean': 'mean', 'iqm': 'interquartile mean'}

# Quantity, heading and note of each section with curves.
_FIGURES = (
  (
    'return',
    'Evaluations',
    'Mean undiscounted return of the episodes of each evaluation.',
  ),
  (
    'training_return',
    'Training episodes',
    'Undiscounted returns of training episodes, exploration included.',
  ),
  ('losses', 'Losses', ''),
  (
    'ratio',
    'Ratio of learning to acting',
    "Samples per insert, divided by the rate limiter's target.",
  ),
  ('lag', 'Policy lag', "Age of the actors' weights, in learner steps."),
  ('speed', 'Speed', 'Environment steps per second.'),
)

_VIDEOS = 'videos'
_KINDS = {'.mp4': 'video/mp4', '.webm': 'video/webm', '.gif': 'image/gif'}
_MAX_BYTES = 4_000_000  # Of an embedded video.
_MAX_BYTES_OF_PAGE = 40_000_000


@dataclasses.dataclass(frozen=True)
class _Table:
  """A table of rows by column; `numbers` are columns aligned to the right."""

  rows: Sequence[Mapping[str, object]]
  numbers: Sequence[int] = ()
  title: str = ''
  note: str = ''
  fold: str = ''  # If not empty, the table is shown when this is clicked.
  wraps: bool = False  # Whether text of the last column is wrapped.


@dataclasses.dataclass(frozen=True)
class _Section:
  """A section; `figures` have environment, title and SVG, `items` are text."""

  title: str
  note: str = ''
  figures: Sequence[tuple[str, str, str]] = ()
  tables: Sequence[_Table] = ()
  items: Sequence[str] = ()
  videos: Sequence[Mapping[str, Any]] = ()

  @property
  def is_empty(self) -> bool:
    tables = any(table.rows for table in self.tables)
    return not (self.figures or tables or self.items or self.videos)


def write(
  found: finding.Found,
  output: str,
  over: str = 'steps',
  statistic: str = 'mean',
) -> None:
  """Writes a report.

  Args:
    found: The runs, and the folders left out.
    output: Path of the file, which ends with .html; its folder is made.
    over: The x-axis of curves: 'steps', 'learner_steps' or 'elapsed_seconds'.
    statistic: Statistic of curves over seeds: 'mean' or 'iqm'.

  Raises:
    SettingError: If an argument is wrong, or the file cannot be written.
    ImportError: Without Matplotlib or Jinja.
  """
  plots.check(output, over, statistic, ENDINGS)
  text = make(found, os.path.dirname(output) or '.', over, statistic)
  with (
    plots.replacing(output) as path,
    open(path, 'w', encoding='utf-8') as file,  # As the page says.
  ):
    file.write(text)


def make(
  found: finding.Found,
  folder: str = '.',
  over: str = 'steps',
  statistic: str = 'mean',
) -> str:
  """Returns the page of a report; see `write`.

  Args:
    folder: Folder of the page, for links to files too large to embed.
  """
  jinja2, drawing = plots.load('jinja2'), plots.load(plots.DRAWING)
  grouped = groups_lib.group(found.runs)
  figures = _figures(drawing, found.runs, grouped, over, statistic)
  sections = [
    _scores(grouped),
    _settings(grouped),
    *_runs(found.runs),
    _find_videos(found.runs, folder),
    _Section(
      'Left out',
      items=[*grouped.notes, *(f'{path}: {why}' for path, why in found.others)],
    ),
  ]
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(os.path.dirname(__file__)),
    autoescape=True,
    trim_blocks=True,
    finalize=lambda v: v if hasattr(v, '__html__') else wording.text(v),
  )
  return environment.get_template('report.html').render(
    heading=_describe(grouped),
    made=_count(found, grouped),
    colors=drawing.COLORS,
    legend=drawing.legend(grouped.labels),
    columns=[one for one in figures if not one.is_empty],
    sections=[one for one in sections if not one.is_empty],
  )


def _describe(grouped: groups_lib.Grouped) -> str:
  """Returns the heading, which names agents and environments."""
  agents = sorted({group.agent for group in grouped.groups})
  if not agents:
    return 'No steps yet'
  parts = [
    ', '.join(names) if len(names) <= _MAX_NAMES else f'{len(names)} {what}'
    for names, what in (
      (agents, 'agents'),
      (grouped.environments, 'environments'),
    )
  ]
  return ' on '.join(parts)


def _count(found: finding.Found, grouped: groups_lib.Grouped) -> str:
  now = datetime.datetime.now().astimezone()
  return (
    f'Runs: {len(found.runs)}, variants: {len(grouped.labels)}, environments: '
    f'{len(grouped.environments)}. Made {now:%Y-%m-%d %H:%M %Z} by repertory '
    f'{__version__}.'
  )


def _figures(
  drawing,
  runs: Sequence[runs_lib.RunRecord],
  grouped: groups_lib.Grouped,
  over: str,
  statistic: str,
) -> list[_Section]:
  meaning = (
    f' Lines are the {_STATISTICS[statistic]} over seeds, and bands its 95% '
    'bootstrap interval; a line is thin where some seeds have no data.'
  )
  sections = []
  for name, title, note in _FIGURES:
    chosen = curves_lib.choose(name, runs)
    panels = curves_lib.make_panels(grouped, chosen, over, statistic)
    figures = [
      (
        panel.environment,
        panel.quantity.title,
        drawing.to_svg(panel, grouped.labels, f'{name} {i}'),
      )
      for i, panel in enumerate(panels)
    ]
    sections.append(_Section(title, note + meaning, figures))
    meaning = '' if figures else meaning
  return sections


def _scores(grouped: groups_lib.Grouped) -> _Section:
  """Returns the groups' last evaluations, the best first."""
  found = scores_lib.score(grouped.groups)
  found.sort(key=lambda one: (one.group.environment, -np.mean(one.last)))
  best: dict[str, scores_lib.Score] = {}
  rows = []
  for one in found:
    first = best.setdefault(one.group.environment, one)
    chance = aggregates.probability_of_improvement(one.last, first.last)
    interval = aggregates.bootstrap_interval(one.last, aggregates.mean)
    low, high = int(np.min(one.steps)), int(np.max(one.steps))
    rows.append(
      {
        'environment': one.group.environment,
        'variant': one.group.label,
        'seeds': len(one.last),
        'steps': f'{low:,}' if low == high else f'{low:,} to {high:,}',
        'last return': wording.number(np.mean(one.last)),
        _INTERVAL: wording.interval(interval),
        'IQM': wording.number(aggregates.interquartile_mean(one.last)),
        'best return': wording.number(np.mean(one.best)),
        'mean over training': wording.number(np.mean(one.area)),
        'beats the first': wording.NOTHING if one is first else f'{chance:.0%}',
      }
    )
  overall = [
    {
      'variant': one.label,
      'IQM': f'{one.value:.2f}',
      _INTERVAL: '{:.2f} to {:.2f}'.format(*one.interval),
    }
    for one in scores_lib.rank_overall(found)
  ]
  return _Section(
    'Scores',
    'Mean returns of the last evaluation of each run, averaged over seeds. The '
    'mean over training covers the steps that all runs on the environment have '
    'taken. The last column is the probability that a run of the variant ends '
    'better than one of the first variant.',
    tables=[
      _Table(rows, range(2, 10)),
      _Table(
        overall,
        (1, 2),
        'Over all environments',
        'Interquartile mean of last returns, 0 for the worst and 1 for the '
        'best of these runs on an environment. Seeds are resampled within it.',
      ),
    ],
  )


def _settings(grouped: groups_lib.Grouped) -> _Section:
  """Returns the settings that differ, and all settings, folded."""
  groups = grouped.groups
  has_several = len(grouped.environments) > 1
  names = [
    f'{group.label} on {group.environment}' if has_several else group.label
    for group in groups
  ]
  rows = [
    {'setting': name, **dict(zip(names, map(_setting, values)))}
    for name, values in groups_lib.compare(groups).items()
  ]
  tables = [_Table(rows)]
  for name, group in zip(names, groups):
    given = {**group.settings, **group.runs[0].experiment}
    own = [{'setting': k, 'value': _setting(given[k])} for k in sorted(given)]
    tables.append(_Table(own, fold=f'All settings of {name}', wraps=True))
  note = '' if rows else 'Only the seeds differ.'
  return _Section('Settings that differ', note, tables=tables)


def _setting(value: Any) -> str:
  if value is None:
    return wording.NOTHING
  return value if isinstance(value, str) else json.dumps(value, default=str)


def _runs(runs: Sequence[runs_lib.RunRecord]) -> list[_Section]:
  """Returns the sections on throughput, incidents and runs."""
  paths = [os.path.abspath(run.directory) for run in runs]
  folder = os.path.commonpath(map(os.path.dirname, paths)) if paths else '.'
  named = [(os.path.relpath(p, folder), run) for p, run in zip(paths, runs)]
  incidents = [
    {'directory': name, **one}
    for name, run in named
    for one in throughput.incidents(run)
  ]
  return [
    _Section(
      'Throughput and waiting',
      'Blocked is the share of time in which the rate limiter makes one side '
      'wait for the other.',
      tables=[
        _Table(
          [{'directory': n, **throughput.pace(run)} for n, run in named],
          range(1, 5),
        )
      ],
    ),
    _Section(
      'Incidents',
      tables=[_Table(incidents, wraps=True)],
      items=() if incidents else ['No restart, warning, stall or failure.'],
    ),
    _Section(
      'Runs',
      f'In {folder}.',
      tables=[_Table([_state(*one) for one in named], (3, 4, 5, 6))],
    ),
  ]


def _state(name: str, run: runs_lib.RunRecord) -> dict[str, object]:
  return {
    'directory': name,
    'seed': wording.NOTHING if run.seed is None else run.seed,
    'topology': run.topology or wording.NOTHING,
    'steps': wording.steps(run.steps, run.max_steps),
    'last return': wording.number(run.last and run.last.episode_return),
    'best return': wording.number(run.best and run.best.episode_return),
    'ran for': wording.duration(run.elapsed_seconds),
    'state': run.state,
    'when': wording.time(run.ended or run.begun),
  }


def _find_videos(
  runs: Sequence[runs_lib.RunRecord], page_folder: str
) -> _Section:
  """Returns the videos of all runs, without symbolic links.

  The newest of each run is embedded if it is small enough.
  """
  shown, left = [], _MAX_BYTES_OF_PAGE
  for run in runs:
    try:
      names = regular_files.list_inside(run.directory, _VIDEOS)
    except OSError:
      continue
    paths = sorted(
      (
        os.path.join(run.directory, _VIDEOS, name)
        for name in names
        if os.path.splitext(name)[1].lower() in _KINDS
      ),
      key=os.path.getmtime,
      reverse=True,
    )
    if not paths:
      continue
    name = os.path.basename(paths[0])
    size, data = os.path.getsize(paths[0]), ''
    if size <= min(_MAX_BYTES, left):
      left -= size
      path = os.path.join(_VIDEOS, name)
      with regular_files.open_inside(run.directory, path) as file:
        data = base64.b64encode(file.read()).decode()
    links = [
      urllib.parse.quote(os.fsencode(os.path.relpath(path, page_folder)))
      for path in paths
    ]
    shown.append(
      {
        'directory': run.directory,
        'name': name,
        'kind': _KINDS[os.path.splitext(name)[1].lower()],
        'data': data,
        'links': [*zip(map(os.path.basename, paths), links)],
      }
    )
  return _Section('Videos', videos=shown)
