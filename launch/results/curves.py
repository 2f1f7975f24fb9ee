"""Learning curves: quantities of runs, and their statistics over seeds."""

from collections.abc import Mapping, Sequence
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
_TITLE_OFFLINE = 'steps; of offline runs, learner steps'
STATISTICS: Mapping[str, aggregates.Statistic] = {
  'mean': aggregates.mean,
  'iqm': aggregates.interquartile_mean,
}

_MAX_POINTS = 100  # Of a curve; closer values are averaged.
# Share of the width by which runs may begin later or end earlier than others.
_TOLERANCE = 0.03

_RETURN = 'episode_return'


class Quantity(NamedTuple):
  """A column of a log that can be plotted, over one of `AXES`."""

  name: str
  title: str  # With its unit.
  label: str
  column: str
  agent: str | None = None  # None for all.


_KNOWN = {
  one.name: one
  for one in (
    Quantity('return', 'evaluation return', 'evaluator', _RETURN),
    Quantity(
      'training_return', 'return of training episodes', 'actors', _RETURN
    ),
    Quantity('ratio', 'samples per insert', 'replay', 'samples_per_insert'),
    Quantity('lag', 'policy lag, learner steps', 'learner', 'policy_lag'),
    # Differences of these steps, by those of the time.
    Quantity('speed', 'environment steps per second', 'actors', 'steps'),
  )
}
NAMES = (*_KNOWN, 'losses')


class Curve(NamedTuple):
  """A statistic of a quantity of a group, over the runs with data at x; `[X]`.

  `size` is the number of runs that have the quantity at all.
  """

  label: str
  x: np.ndarray
  middle: np.ndarray
  low: np.ndarray  # Of the interval.
  high: np.ndarray
  num_runs: np.ndarray
  size: int


class Panel(NamedTuple):
  """Curves of one quantity on one environment; `x_title` is that of x."""

  environment: str
  quantity: Quantity
  x_title: str
  curves: Sequence[Curve]


def make_panels(
  grouped: groups_lib.Grouped,
  quantities: Sequence[Quantity],
  over: str = 'steps',
  statistic: str = 'mean',
) -> list[Panel]:
  """Returns panels sorted by quantity, then environment, without empty ones."""
  panels = []
  for quantity in quantities:
    for environment in grouped.environments:
      found = [
        (group, curve)
        for group in grouped.groups
        if group.environment == environment
        and quantity.agent in (None, group.agent)
        and (curve := _make_curve(group, quantity, over, STATISTICS[statistic]))
      ]
      title = AXES[over]
      if over == 'steps' and 'offline' in (
        group.settings.get('topology') for group, _ in found
      ):
        title = _TITLE_OFFLINE
      if found:
        curves = [curve for _, curve in found]
        panels.append(Panel(environment, quantity, title, curves))
  return panels


def choose(name: str, runs: Sequence[runs_lib.RunRecord]) -> list[Quantity]:
  """Returns the quantities of a name: one of `NAMES`, or '<log>.<column>'."""
  if name in _KNOWN:
    return [_KNOWN[name]]
  if name == 'losses':
    losses = {
      (run.agent, column)
      for run in runs
      for column in run.logs.get('learner')
      if run.agent and (column == 'loss' or column.endswith('_loss'))
    }
    return [
      Quantity(
        f'learner.{column}',
        f'{agent}: {column.replace("_", " ")}',
        *('learner', column, agent),
      )
      for agent, column in sorted(losses)
    ]
  label, _, column = name.partition('.')
  known = {
    f'{label}.{one}'
    for run in runs
    for one in run.logs.get(label)
    if len(run.logs.column(label, one))
  }
  if name in known:
    return [Quantity(name, column.replace('_', ' '), label, column)]
  raise SettingError(
    'what',
    f'must be one of {", ".join(NAMES)}, or <log>.<column> with a column of '
    f'numbers in the logs; got {name!r}.'
    f'{did_you_mean(name, [*NAMES, *sorted(known)])}',
  )


def _make_curve(
  group: groups_lib.Group,
  quantity: Quantity,
  over: str,
  statistic: aggregates.Statistic,
) -> Curve | None:
  found = [_read(run, quantity, over) for run in group.runs]
  found = [(x, y) for x, y in found if len(x)]
  if not found:
    return None
  grid = np.unique(np.concatenate([x for x, _ in found]))
  if len(grid) > _MAX_POINTS:
    grid = np.linspace(grid[0], grid[-1], _MAX_POINTS)
  values = np.stack([_sample(x, y, grid) for x, y in found])  # [R, X]
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
  num_runs = np.sum(is_there, axis=0)
  return Curve(group.label, grid, middle, low, high, num_runs, len(found))


def _sample(x: np.ndarray, y: np.ndarray, grid: np.ndarray) -> np.ndarray:
  """Averages and interpolates a run's values on a grid, NaN outside of it."""
  if len(grid) == 1:
    return np.array([np.mean(y)])
  # Averages the values whose nearest point of the grid is the same.
  bins = np.searchsorted((grid[1:] + grid[:-1]) / 2, x)
  counts = np.bincount(bins)
  held = counts > 0
  mean_x, mean_y = (
    np.bincount(bins, values)[held] / counts[held] for values in (x, y)
  )
  slack = _TOLERANCE * (grid[-1] - grid[0])
  is_outside = (grid < mean_x[0] - slack) | (grid > mean_x[-1] + slack)
  return np.where(is_outside, np.nan, np.interp(grid, mean_x, mean_y))


def _read(
  run: runs_lib.RunRecord, quantity: Quantity, over: str
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the finite x and y of a run, `[N]` each."""
  log = run.logs.get(quantity.label)
  x, y = (run.logs.column(quantity.label, n) for n in (over, quantity.column))
  if quantity.name == 'speed':
    seconds = run.logs.column(quantity.label, 'elapsed_seconds')
    if len(seconds) != len(y):  # It is not a column of numbers.
      return np.empty(0), np.empty(0)
    # Between rows.
    x, y, seconds = (x[1:] + x[:-1]) / 2, np.diff(y), np.diff(seconds)
    y = np.divide(y, seconds, np.full_like(y, np.nan), where=seconds > 0)
  elif 'node' in log and len(y):
    y = _mean_over_nodes(log['node'], y)
  if len(x) != len(y):  # One of them is not a column of numbers.
    return np.empty(0), np.empty(0)
  kept = np.isfinite(x) & np.isfinite(y)
  return x[kept], y[kept]


def _mean_over_nodes(nodes: np.ndarray, y: np.ndarray) -> np.ndarray:
  """Returns at each row the mean over nodes of the last value of each."""
  newest: dict[str, float] = {}
  means = np.full(len(y), np.nan)
  for row in np.flatnonzero(np.isfinite(y)):
    newest[nodes[row]] = y[row]
    means[row] = np.mean([*newest.values()])
  return means
