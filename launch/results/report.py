"""Report on runs: one self-contained page of HTML.

`report.html` is its template. Importing this module raises ImportError without
the extra 'plots'.
"""

import base64
import collections
import contextlib
import datetime
import json
import os
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repertory import __version__
from repertory.components.config import regular_files
from repertory.launch.experiments import directories
from repertory.launch.opening import run_metadata
from repertory.launch.results import aggregates, plots, wording
from repertory.launch.results import curves as curves_lib
from repertory.launch.results import groups as groups_lib
from repertory.launch.results import runs as runs_lib

try:
  import jinja2
except ImportError as error:
  raise ImportError(
    "Reports need the package jinja2: pip install 'repertory[plots]'.",
    name='jinja2',
  ) from error

_ENDINGS = ('.html', '.htm')
_INTERVAL = f'{aggregates.CONFIDENCE:.0%} interval'
_STATISTICS = {'mean': 'mean', 'iqm': 'interquartile mean'}
# Topologies of one thread, in which the rate limiter never blocks.
_TAKE_TURNS = ('single', 'anakin')

_VIDEOS = 'videos'
_KINDS = {'.mp4': 'video/mp4', '.webm': 'video/webm', '.gif': 'image/gif'}
_MAX_BYTES = 4_000_000  # Of an embedded video.
_MAX_BYTES_OF_PAGE = 40_000_000

# Cells of a table by column.
_Row = Mapping[str, object]


def write(
  found: runs_lib.Found,
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
  """
  plots.check(output, over, statistic, _ENDINGS)
  text = make(found, os.path.dirname(output) or '.', over, statistic)
  with (
    plots.replacing(output) as path,
    open(path, 'w', encoding='utf-8') as file,  # As the page says.
  ):
    file.write(text)


def make(
  found: runs_lib.Found,
  folder: str = '.',
  over: str = 'steps',
  statistic: str = 'mean',
) -> str:
  """Returns the page of a report; see `write`.

  Args:
    folder: Folder of the page, for links to files too large to embed.
  """
  grouped = groups_lib.group(found.runs)
  scores = groups_lib.score(grouped.groups)
  scores.sort(key=lambda one: (one.group.environment, -np.mean(one.last)))
  # Before incidents, which include logs that cannot be read.
  drawn = _draw_all(grouped, found.runs, over, statistic)
  paths = [os.path.abspath(run.directory) for run in found.runs]
  common = os.path.commonpath(map(os.path.dirname, paths)) if paths else '.'
  named = [
    (os.path.relpath(path, common), run) for path, run in zip(paths, found.runs)
  ]
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(os.path.dirname(__file__)),
    autoescape=True,
    trim_blocks=True,
    finalize=lambda v: v if hasattr(v, '__html__') else wording.text(v),
  )
  environment.filters['setting'] = _setting
  return environment.get_template('report.html').render(
    agents=sorted({group.agent for group in grouped.groups}),
    made=f'{datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}',
    version=__version__,
    grouped=grouped,
    colors=plots.COLORS,
    legend=plots.legend(grouped.labels),
    figures=drawn,
    statistic=_STATISTICS[statistic],
    scores=_list_scores(scores),
    overall=groups_lib.rank_overall(scores),
    confidence=_INTERVAL,
    names=_name(grouped),
    differences=groups_lib.compare(grouped.groups),
    pace=[{'directory': name, **pace(run)} for name, run in named],
    incidents=[
      {'directory': name, **one}
      for name, run in named
      for one in incidents(run)
    ],
    folder=common,
    runs=[_state(*one) for one in named],
    videos=_find_videos(found.runs, folder),
    left_out=[
      *grouped.notes,
      *(f'{path}: {why}' for path, why in found.others),
    ],
  )


def _draw_all(
  grouped: groups_lib.Grouped,
  runs: Sequence[runs_lib.RunRecord],
  over: str,
  statistic: str,
) -> dict[str, list[tuple[str, str, str]]]:
  """Returns environment, title and SVG of the panels of each quantity."""
  drawn = {}
  for name in curves_lib.NAMES:
    chosen = curves_lib.choose(name, runs)
    panels = curves_lib.make_panels(grouped, chosen, over, statistic)
    drawn[name] = [
      (
        panel.environment,
        panel.quantity.title,
        plots.to_svg(panel, grouped.labels, f'{name} {i}'),
      )
      for i, panel in enumerate(panels)
    ]
  return drawn


def _list_scores(scores: Sequence[groups_lib.Score]) -> list[_Row]:
  """Returns the groups' last evaluations; the first of each task is best."""
  best: dict[str, groups_lib.Score] = {}
  rows = []
  for one in scores:
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
        _INTERVAL: wording.interval(*interval),
        'IQM': wording.number(aggregates.interquartile_mean(one.last)),
        'best return': wording.number(np.mean(one.best)),
        'mean over training': wording.number(np.mean(one.area)),
        'beats the first': wording.NOTHING if one is first else f'{chance:.0%}',
      }
    )
  return rows


def _name(grouped: groups_lib.Grouped) -> list[str]:
  """Names groups, with their environments if there are several."""
  if len(grouped.environments) < 2:
    return [group.label for group in grouped.groups]
  return [f'{group.label} on {group.environment}' for group in grouped.groups]


def _setting(value: Any) -> str:
  if value is None:
    return wording.NOTHING
  return value if isinstance(value, str) else json.dumps(value, default=str)


def pace(run: runs_lib.RunRecord) -> dict[str, str]:
  """Returns a row on the speed and the waiting of a run, as text.

  Blocked is the share of time in which the rate limiter makes one side wait.
  """
  seconds = run.elapsed_seconds or 0.0
  acting = learning = None
  bottleneck = 'acting and learning take turns'
  if run.topology not in _TAKE_TURNS:
    acting, learning = (
      curves_lib.mean(run, 'replay', f'{side}_wait')
      for side in ('inserts', 'samples')
    )
    bottleneck = _name_bottleneck(acting, learning)

  def per_second(steps: int | None) -> str:
    return wording.number(steps / seconds if seconds and steps else None)

  def share(value: float | None) -> str:
    return wording.NOTHING if value is None else f'{value:.0%}'

  return {
    'steps/s': per_second(run.steps),
    'updates/s': per_second(run.learner_steps),
    'acting blocked': share(acting),
    'learning blocked': share(learning),
    'bottleneck': bottleneck,
  }


def _name_bottleneck(acting: float | None, learning: float | None) -> str:
  """Names the slower side from the shares of time in which each is blocked."""
  if acting is None or learning is None:
    return ''
  if max(acting, learning) < 0.5:
    return 'neither side waits for the other most of the time'
  if learning >= acting:
    return 'learning waits for acting: more or faster actors would help'
  return 'acting waits for learning: a faster learner would help'


def incidents(run: runs_lib.RunRecord) -> list[dict[str, str]]:
  """Returns a row for each restart, warning, stall or failure of a run."""
  counted: collections.Counter[tuple[str, str]] = collections.Counter()
  for start in run.starts[1:]:
    if run_metadata.BEGUN in start:
      counted['resumed', str(start.get('message') or 'started again')] += 1
  for row in run.logs.rows('nodes'):
    node = row.get('node')
    if row.get('restarted_after'):
      cause = _last_line(row['restarted_after'])
      counted['restarted', f'{node}, after: {cause}'] += 1
    if row.get('warning'):
      counted['warning', f'{node}: {_last_line(row["warning"])}'] += 1
  skipped = run.logs.column('learner', 'skipped_updates')
  if len(skipped) and np.nanmax(skipped) > 0:
    text = f'{np.nanmax(skipped):,.0f} non-finite updates'
    counted['skipped', text] += 1
  with contextlib.suppress(OSError):
    folder = directories.DIVERGED
    for name in regular_files.list_inside(run.directory, folder):
      counted['diverged', f'the batch is in {folder}/{name}'] += 1
  with contextlib.suppress(OSError):
    stall = os.path.join(directories.LOGS, 'stall.txt')
    with regular_files.open_inside(run.directory, stall) as file:
      counted['stalled', file.readline().decode(errors='replace').strip()] += 1
  if run.state == runs_lib.FAILED or (
    run.state == runs_lib.INTERRUPTED and run.why
  ):
    counted[run.state, _last_line(run.why)] += 1
  for problem in run.problems:
    counted['unreadable', problem] += 1
  return [
    {'kind': kind, 'description': text + (f' (× {n})' if n > 1 else '')}
    for (kind, text), n in counted.items()
  ]


def _last_line(text: object) -> str:
  return str(text).strip().rpartition('\n')[2]


def _state(name: str, run: runs_lib.RunRecord) -> _Row:
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
) -> list[Mapping[str, Any]]:
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
  return shown
