"""Learning curves of groups of runs: statistics over seeds, with intervals."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from repertory.components.config.settings import SettingError, did_you_mean
from repertory.launch.results import aggregates
from repertory.launch.results import groups as groups_lib
from repertory.launch.results import quantities as quantities_lib

STATISTICS: Mapping[str, aggregates.Statistic] = {
  'mean': aggregates.mean,
  'iqm': aggregates.interquartile_mean,
}

_MAX_POINTS = 100  # Of a curve; closer values are averaged.
# Share of the width by which runs may begin later or end earlier than others.
_TOLERANCE = 0.03

# The topology of offline runs.
_OFFLINE = 'offline'


@dataclasses.dataclass(frozen=True)
class Curve:
  """A quantity of a group; all arrays are `[X]`.

  Attributes:
    label: Label of the group.
    x: Positions, increasing.
    middle: The statistic over the runs with data at x.
    interval: Its interval, see `aggregates.bootstrap_interval`.
    num_runs: Number of runs with data at x.
    size: Number of runs of the group that have the quantity at all.
  """

  label: str
  x: np.ndarray
  middle: np.ndarray
  interval: aggregates.Interval
  num_runs: np.ndarray
  size: int


@dataclasses.dataclass(frozen=True)
class Panel:
  """One quantity on one environment.

  Attributes:
    environment: Name of the environment.
    quantity: Quantity on the y-axis.
    over: The x-axis, one of `quantities.AXES`.
    curves: A curve for each group that has the quantity.
  """

  environment: str
  quantity: quantities_lib.Quantity
  over: str
  curves: Sequence[Curve]


def make_panels(
  grouped: groups_lib.Grouped,
  quantities: Sequence[quantities_lib.Quantity],
  over: str = 'steps',
  statistic: str = 'mean',
) -> list[Panel]:
  """Returns panels sorted by quantity, then environment, without empty ones.

  Args:
    grouped: The groups.
    quantities: The quantities to plot.
    over: The x-axis, one of `quantities.AXES`.
    statistic: One of `STATISTICS`.

  Raises:
    SettingError: If over or statistic is unknown.
  """
  check(over, statistic)
  panels = []
  for quantity in quantities:
    for environment in grouped.environments:
      own = [
        group
        for group in grouped.groups
        if group.environment == environment
        and quantity.agent in (None, group.agent)
      ]
      axis = _axis_of(own, over)
      found = [
        _make_curve(group, quantity, axis, STATISTICS[statistic])
        for group in own
      ]
      curves = [curve for curve in found if curve is not None]
      if curves:
        panels.append(Panel(environment, quantity, axis, curves))
  return panels


def _axis_of(groups: Sequence[groups_lib.Group], over: str) -> str:
  """Returns the x-axis; for offline runs, steps are learner steps."""
  are_offline = all(g.settings.get('topology') == _OFFLINE for g in groups)
  return 'learner_steps' if over == 'steps' and are_offline else over


def check(over: str, statistic: str) -> None:
  """Raises SettingError if an argument is unknown."""
  for name, value, known in (
    ('over', over, quantities_lib.AXES),
    ('statistic', statistic, STATISTICS),
  ):
    if value not in known:
      raise SettingError(
        name,
        f'must be one of {", ".join(known)}; got {value!r}.'
        f'{did_you_mean(value, known)}',
      )


def _make_curve(
  group: groups_lib.Group,
  quantity: quantities_lib.Quantity,
  over: str,
  statistic: aggregates.Statistic,
) -> Curve | None:
  found = [quantity.series(run, over) for run in group.runs]
  found = [series for series in found if len(series.x)]
  if not found:
    return None
  grid = _make_grid(found)
  values = np.stack([_sample(series, grid) for series in found])  # [R, X]
  num_runs = np.sum(~np.isnan(values), axis=0)
  middle = np.full(len(grid), np.nan)
  interval = aggregates.Interval(middle.copy(), middle.copy())
  for columns, runs in _patterns(values):
    scores = values[np.ix_(runs, columns)]
    middle[columns] = statistic(scores)
    low, high = aggregates.bootstrap_interval(scores, statistic)
    interval.low[columns], interval.high[columns] = low, high
  return Curve(group.label, grid, middle, interval, num_runs, len(found))


def _make_grid(found: Sequence[quantities_lib.Series]) -> np.ndarray:
  """Returns the x of a curve: those of its runs if few, else a linear grid."""
  points = np.unique(np.concatenate([series.x for series in found]))
  if len(points) <= _MAX_POINTS:
    return points
  return np.linspace(points[0], points[-1], _MAX_POINTS)


def _sample(series: quantities_lib.Series, grid: np.ndarray) -> np.ndarray:
  """Resamples a run's values on a grid, NaN where it has none.

  Values of one cell are averaged by their weights, and values between cells are
  interpolated.
  """
  if len(grid) == 1:
    return np.array([np.average(series.y, weights=series.weight)])
  # Assigns each value to the nearest point of the grid.
  edges = (grid[1:] + grid[:-1]) / 2
  bins = np.searchsorted(edges, series.x)
  weights = np.bincount(bins, series.weight, len(grid))
  held = weights > 0
  total_x, total_y = (
    np.bincount(bins, series.weight * values, len(grid))[held] / weights[held]
    for values in (series.x, series.y)
  )
  slack = _TOLERANCE * (grid[-1] - grid[0])
  is_outside = (grid < total_x[0] - slack) | (grid > total_x[-1] + slack)
  return np.where(is_outside, np.nan, np.interp(grid, total_x, total_y))


def _patterns(
  values: np.ndarray,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
  """Yields columns of `[R, X]` that have the same runs, and those runs."""
  is_there = ~np.isnan(values)
  patterns, kinds = np.unique(is_there, axis=1, return_inverse=True)
  for kind in range(patterns.shape[1]):
    runs = np.flatnonzero(patterns[:, kind])
    if len(runs):
      yield np.flatnonzero(kinds == kind), runs
