"""Learning curves: quantities of runs, and their statistics over seeds."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repertory.components.config.settings import SettingError, did_you_mean
from repertory.launch.results import aggregates
from repertory.launch.results import groups as groups_lib
from repertory.launch.results import runs as runs_lib

# x-axes of curves: columns that every log has, and their titles.
AXES = {
  'steps': 'environment steps',
  'learner_steps': 'learner steps',
  'elapsed_seconds': 'seconds of running',
}
STATISTICS: Mapping[str, aggregates.Statistic] = {
  'mean': aggregates.mean,
  'iqm': aggregates.interquartile_mean,
}

_MAX_POINTS = 100  # Of a curve; closer values are averaged.
# Share of the width by which runs may begin later or end earlier than others.
_TOLERANCE = 0.03


class Series(NamedTuple):
  """Finite values of one run, and their positive weights in averages; `[N]`."""

  x: np.ndarray
  y: np.ndarray
  weight: np.ndarray


@dataclasses.dataclass(frozen=True)
class Quantity:
  """A quantity that can be plotted, over one of `AXES`."""

  name: str
  title: str  # With its unit.
  series: Callable[[runs_lib.RunRecord, str], Series]
  reference: float | None = None  # Target value, drawn as a line.
  # y that a figure always shows; it shows nothing below a least one of 0.
  in_view: tuple[float, float] | None = None
  agent: str | None = None  # None for all.


@dataclasses.dataclass(frozen=True)
class Curve:
  """A statistic of a quantity of a group, over the runs with data at x; `[X]`.

  `size` is the number of runs that have the quantity at all.
  """

  label: str
  x: np.ndarray
  middle: np.ndarray
  interval: aggregates.Interval
  num_runs: np.ndarray
  size: int


@dataclasses.dataclass(frozen=True)
class Panel:
  """Curves of one quantity on one environment, over one of `AXES`."""

  environment: str
  quantity: Quantity
  over: str
  curves: Sequence[Curve]


def make_panels(
  grouped: groups_lib.Grouped,
  quantities: Sequence[Quantity],
  over: str = 'steps',
  statistic: str = 'mean',
) -> list[Panel]:
  """Returns panels sorted by quantity, then environment, without empty ones.

  For offline runs, steps are learner steps.
  """
  panels = []
  for quantity in quantities:
    for environment in grouped.environments:
      own = [
        group
        for group in grouped.groups
        if group.environment == environment
        and quantity.agent in (None, group.agent)
      ]
      are_offline = all(g.settings.get('topology') == 'offline' for g in own)
      axis = 'learner_steps' if over == 'steps' and are_offline else over
      curves = [
        curve
        for group in own
        if (curve := _make_curve(group, quantity, axis, STATISTICS[statistic]))
      ]
      if curves:
        panels.append(Panel(environment, quantity, axis, curves))
  return panels


def choose(name: str, runs: Sequence[runs_lib.RunRecord]) -> list[Quantity]:
  """Returns the quantities of a name: one of `NAMES`, or '<log>.<column>'."""
  if name == 'losses':
    losses = {
      (run.agent, column)
      for run in runs
      for column in run.logs.get('learner', ())
      if run.agent and (column == 'loss' or column.endswith('_loss'))
    }
    return [
      dataclasses.replace(
        _of_column('learner', column),
        title=f'{agent}: {column.replace("_", " ")}',
        agent=agent,
      )
      for agent, column in sorted(losses)
    ]
  if name in _KNOWN:
    return [_KNOWN[name]]
  label, dot, column = name.partition('.')
  if dot and any(len(run.logs.column(label, column)) for run in runs):
    return [_of_column(label, column)]
  near = list(NAMES)
  if dot:
    near = sorted(
      f'{label}.{known}'
      for run in runs
      for known in run.logs.get(label, ())
      if len(run.logs.column(label, known))
    )
  raise SettingError(
    'what',
    f'must be one of {", ".join(NAMES)}, or <log>.<column> with a column of '
    f'numbers in the logs; got {name!r}.{did_you_mean(name, near)}',
  )


def _of_column(
  label: str, column: str, name: str = '', title: str = ''
) -> Quantity:
  return Quantity(
    name or f'{label}.{column}',
    title or column.replace('_', ' '),
    lambda run, over: _rows(run, label, column, over),
  )


def _make_curve(
  group: groups_lib.Group,
  quantity: Quantity,
  over: str,
  statistic: aggregates.Statistic,
) -> Curve | None:
  found = [quantity.series(run, over) for run in group.runs]
  found = [series for series in found if len(series.x)]
  if not found:
    return None
  grid = np.unique(np.concatenate([series.x for series in found]))
  if len(grid) > _MAX_POINTS:
    grid = np.linspace(grid[0], grid[-1], _MAX_POINTS)
  values = np.stack([_sample(series, grid) for series in found])  # [R, X]
  is_there = ~np.isnan(values)
  middle, low, high = np.full([3, len(grid)], np.nan)
  for runs in np.unique(is_there[:, is_there.any(axis=0)], axis=1).T:
    # All positions at which the same runs have data.
    columns = np.all(is_there == runs[:, None], axis=0)
    scores = values[np.ix_(runs, columns)]
    middle[columns] = statistic(scores)
    low[columns], high[columns] = aggregates.bootstrap_interval(
      scores, statistic
    )
  interval = aggregates.Interval(low, high)
  num_runs = np.sum(is_there, axis=0)
  return Curve(group.label, grid, middle, interval, num_runs, len(found))


def _sample(series: Series, grid: np.ndarray) -> np.ndarray:
  """Averages and interpolates a run's values on a grid, NaN outside of it."""
  if len(grid) == 1:
    return np.array([np.average(series.y, weights=series.weight)])
  # Assigns each value to the nearest point of the grid.
  bins = np.searchsorted((grid[1:] + grid[:-1]) / 2, series.x)
  weights = np.bincount(bins, series.weight, len(grid))
  held = weights > 0
  total_x, total_y = (
    np.bincount(bins, series.weight * values, len(grid))[held] / weights[held]
    for values in (series.x, series.y)
  )
  slack = _TOLERANCE * (grid[-1] - grid[0])
  is_outside = (grid < total_x[0] - slack) | (grid > total_x[-1] + slack)
  return np.where(is_outside, np.nan, np.interp(grid, total_x, total_y))


def _rows(
  run: runs_lib.RunRecord, label: str, column: str, over: str
) -> Series:
  logs = run.logs
  y = logs.column(label, column)
  nodes = logs.get(label, {}).get('node')
  # The mean over nodes of the last value of each.
  if nodes is not None and len(nodes) == len(y):
    newest: dict[str, float] = {}
    means = np.full(len(y), np.nan)
    for row in np.flatnonzero(np.isfinite(y)):
      newest[nodes[row]] = y[row]
      means[row] = np.mean([*newest.values()])
    y = means
  # A merged row is a mean over `count` values.
  counts = logs.column(label, 'count')
  counts = counts if len(counts) else np.ones(len(y))
  weight = logs.column(label, f'{column}_count')
  weight = np.where(np.isnan(weight), counts, weight) if len(weight) else counts
  return _clean(logs.column(label, over), y, weight)


def mean(run: runs_lib.RunRecord, label: str, column: str) -> float | None:
  """Returns the mean of a column of a log, weighted by the counts of rows."""
  series = _rows(run, label, column, 'steps')
  return (
    float(np.average(series.y, weights=series.weight))
    if len(series.y)
    else None
  )


def _ratio(run: runs_lib.RunRecord, over: str) -> Series:
  achieved = _rows(run, 'replay', 'samples_per_insert', over)
  target = _rows(run, 'replay', 'target_samples_per_insert', over)
  if not len(target.y):
    return _NOTHING
  return achieved._replace(y=achieved.y / target.y[-1])


def _lag(run: runs_lib.RunRecord, over: str) -> Series:
  """Returns the policy lag, as seen by the learner or else by inference."""
  learned = _rows(run, 'learner', 'policy_lag', over)
  if len(learned.y):
    return learned
  version = run.logs.column('inference', 'version')
  newest = run.logs.column('inference', 'learner_steps')
  if not len(version):
    return _NOTHING
  lag = np.where(version < 0, np.nan, np.maximum(newest - version, 0))
  return _clean(run.logs.column('inference', over), lag, np.ones(len(lag)))


def _speed(run: runs_lib.RunRecord, over: str) -> Series:
  """Returns environment steps per second, between rows of the actors' log."""
  steps, seconds, x = (
    run.logs.column('actors', name)
    for name in ('steps', 'elapsed_seconds', over)
  )
  if len(steps) < 2:
    return _NOTHING
  taken = np.diff(seconds)
  with np.errstate(divide='ignore', invalid='ignore'):
    return _clean((x[1:] + x[:-1]) / 2, np.diff(steps) / taken, taken)


def _clean(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Series:
  """Removes non-finite values and those without weight."""
  if not len(x) == len(y) == len(weight):
    return _NOTHING
  kept = np.isfinite(x) & np.isfinite(y) & (weight > 0)
  return Series(x[kept], y[kept], weight[kept])


_NOTHING = Series(np.empty(0), np.empty(0), np.empty(0))
_RETURN = 'episode_return'
_KNOWN = {
  quantity.name: quantity
  for quantity in (
    _of_column('evaluator', _RETURN, 'return', 'return of evaluations'),
    _of_column(
      'actors', _RETURN, 'training_return', 'return of training episodes'
    ),
    Quantity(
      'ratio', 'samples per insert ÷ target', _ratio, 1.0, in_view=(0.9, 1.1)
    ),
    Quantity('lag', 'policy lag, learner steps', _lag, in_view=(0.0, 1.0)),
    Quantity(
      'speed', 'environment steps per second', _speed, in_view=(0.0, 1.0)
    ),
  )
}
NAMES = (*_KNOWN, 'losses')
