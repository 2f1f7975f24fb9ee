"""Report on runs: one self-contained page of HTML.

`report.html` is its template. Importing this module raises ImportError without
the extra 'plots'.
"""

import base64
import collections
import contextlib
import datetime
import os
from collections.abc import Mapping, Sequence

import numpy as np

from repertory import __version__
from repertory.components.config import regular_files
from repertory.components.loggers import figures
from repertory.launch.experiments import directories
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
_STATISTICS = {'mean': 'mean', 'iqm': 'interquartile mean'}
# Topologies of one thread, in which the rate limiter never blocks.
_TAKE_TURNS = ('single', 'anakin')

_VIDEOS = 'videos'
_KINDS = {'.mp4': 'video/mp4', '.webm': 'video/webm', '.gif': 'image/gif'}
_MAX_BYTES = 40_000_000  # Of the videos in a page.

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
  plots.write(output, make(found, over, statistic).encode())


def make(
  found: runs_lib.Found, over: str = 'steps', statistic: str = 'mean'
) -> str:
  """Returns the page of a report; see `write`."""
  grouped = groups_lib.group(found.runs)
  # Before incidents, which include logs that cannot be read.
  drawn = {
    name: [
      plots.draw([panel], grouped.labels, 'svg')
      for panel in curves_lib.make_panels(
        grouped, curves_lib.choose(name, found.runs), over, statistic
      )
    ]
    for name in curves_lib.NAMES
  }
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(os.path.dirname(__file__)),
    autoescape=True,
    trim_blocks=True,
    finalize=lambda v: v if hasattr(v, '__html__') else wording.text(v),
  )
  environment.filters['base64'] = lambda data: base64.b64encode(data).decode()
  return environment.get_template('report.html').render(
    agents=sorted({group.agent for group in grouped.groups}),
    made=f'{datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}',
    version=__version__,
    grouped=grouped,
    figures=drawn,
    statistic=_STATISTICS[statistic],
    scores=_list_scores(grouped.groups),
    differences=groups_lib.compare(grouped.groups),
    incidents=[one for run in found.runs for one in incidents(run)],
    runs=[describe(run) for run in found.runs],
    videos=_find_videos(found.runs),
    left_out=[
      *grouped.notes,
      *(f'{path}: {why}' for path, why in found.others),
    ],
  )


def _list_scores(groups: Sequence[groups_lib.Group]) -> list[_Row]:
  """Returns the groups' last evaluations, the best of each task first."""
  scores = groups_lib.score(groups)
  scores.sort(key=lambda one: (one.group.environment, -np.mean(one.last)))
  rows = []
  for one in scores:
    interval = aggregates.bootstrap_interval(one.last, aggregates.mean)
    steps = [run.steps or 0 for run in one.group.runs]
    ends = dict.fromkeys(f'{end(steps):,}' for end in (min, max))
    rows.append(
      {
        'environment': one.group.environment,
        'variant': one.group.label,
        'seeds': len(one.last),
        'steps': ' to '.join(ends),
        'last return': wording.number(np.mean(one.last)),
        '95% interval': wording.interval(*interval),
        'IQM': wording.number(aggregates.interquartile_mean(one.last)),
        'best return': wording.number(np.mean(one.best)),
      }
    )
  return rows


def describe(run: runs_lib.RunRecord) -> _Row:
  """Returns a row on the state and speed of a run, as text.

  Blocked is the share of time in which the rate limiter makes one side wait.
  """
  seconds = run.elapsed_seconds

  def per_second(steps: int | None) -> str:
    return wording.number(steps / seconds if seconds and steps else None)

  def share(side: str) -> str:
    waits = run.logs.column('replay', f'{side}_wait')
    waits = waits[np.isfinite(waits)]
    if run.topology in _TAKE_TURNS or not len(waits):
      return wording.NOTHING
    return f'{np.mean(waits):.0%}'

  return {
    'directory': run.directory,
    'seed': wording.NOTHING if run.seed is None else run.seed,
    'topology': run.topology or wording.NOTHING,
    'steps': wording.steps(run.steps, run.max_steps),
    'steps/s': per_second(run.steps),
    'updates/s': per_second(run.learner_steps),
    'acting blocked': share('inserts'),
    'learning blocked': share('samples'),
    'last return': wording.number(run.last and run.last.episode_return),
    'best return': wording.number(run.best and run.best.episode_return),
    'ran for': (
      wording.NOTHING if seconds is None else figures.duration(seconds)
    ),
    'state': run.state,
    'when': wording.time(run.ended),
  }


def incidents(run: runs_lib.RunRecord) -> list[_Row]:
  """Returns a row for each restart, warning, stall or failure of a run."""
  counted: collections.Counter[tuple[str, str]] = collections.Counter()
  for row in run.logs.rows('nodes'):
    for key, kind in (('restarted_after', 'restarted'), ('warning', 'warning')):
      if row.get(key):
        counted[kind, f'{row.get("node")}: {_last_line(row[key])}'] += 1
  skipped = run.logs.column('learner', 'skipped_updates')
  if len(skipped) and np.nanmax(skipped) > 0:
    counted['skipped', f'{np.nanmax(skipped):,.0f} non-finite updates'] += 1
  with contextlib.suppress(OSError):
    stall = os.path.join(directories.LOGS, 'stall.txt')
    with regular_files.open_inside(run.directory, stall) as file:
      counted['stalled', file.readline().decode(errors='replace').strip()] += 1
  if run.why:
    counted[run.state, _last_line(run.why)] += 1
  for problem in run.logs.problems:
    counted['unreadable', problem] += 1
  return [
    {
      'directory': run.directory,
      'kind': kind,
      'description': text + (f' (× {n})' if n > 1 else ''),
    }
    for (kind, text), n in counted.items()
  ]


def _last_line(text: object) -> str:
  return str(text).strip().rpartition('\n')[2]


def _find_videos(runs: Sequence[runs_lib.RunRecord]) -> list[_Row]:
  """Returns the newest video of each run, without symbolic links.

  Its data is empty if the page has no room for it.
  """
  shown, left = [], _MAX_BYTES
  for run in runs:
    names = []
    with contextlib.suppress(OSError):
      names = regular_files.list_inside(run.directory, _VIDEOS)
    paths = [
      os.path.join(run.directory, _VIDEOS, name)
      for name in names
      if os.path.splitext(name)[1].lower() in _KINDS
    ]
    if not paths:
      continue
    path = max(paths, key=os.path.getmtime)
    data = b''
    if os.path.getsize(path) <= left:
      inside = os.path.join(_VIDEOS, os.path.basename(path))
      with regular_files.open_inside(run.directory, inside) as file:
        data = file.read()
      left -= len(data)
    shown.append(
      {
        'path': path,
        'kind': _KINDS[os.path.splitext(path)[1].lower()],
        'data': data,
      }
    )
  return shown
