"""Curves of groups of runs: a mean over seeds, and how far to trust it."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from repertory.components.settings import SettingError, did_you_mean
from repertory.launch.records import aggregates
from repertory.launch.records import groups as groups_lib
from repertory.launch.records import quantities as quantities_lib

STATISTICS: Mapping[str, aggregates.Statistic] = {
  'mean': aggregates.mean,
  'iqm': aggregates.interquartile_mean,
}

# More points than that cannot be told apart in a figure; and what lies so close
# is better averaged.
_MAX_POINTS = 100
# Runs begin and end at about the same place, not at the same: so much of the
# width is no gap.
_TOLERANCE = 0.03

# The topology in which nobody acts.
_OFFLINE = 'offline'


@dataclasses.dataclass(frozen=True)
class Curve:
  """A quantity of a group; all arrays are `[X]`.

  Attributes:
    label: The group's.
    x: Increases.
    middle: The statistic over the runs that have come so far.
    interval: Where that lies, see `aggregates.bootstrap_interval`.
    num_runs: Over how many runs it is.
    size: Runs of the group that have the quantity at all.
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
    environment: Its name.
    quantity: What the height is.
    over: One of `quantities.AXES`.
    curves: One for each group that has it.
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
  """Returns panels by quantity, then environment; not those without a curve.

  Args:
    grouped: The groups.
    quantities: What to tell of them.
    over: One of `quantities.AXES`.
    statistic: One of `STATISTICS`.

  Raises:
    SettingError: If over or statistic is none of those.
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
  """Returns what their curves go over: of data, steps are learner steps."""
  are_of_data = all(g.settings.get('topology') == _OFFLINE for g in groups)
  return 'learner_steps' if over == 'steps' and are_of_data else over


def check(over: str, statistic: str) -> None:
  """Raises SettingError if one of them is none that there is."""
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
  """Returns where a curve has points: where its runs have, if those are few."""
  points = np.unique(np.concatenate([series.x for series in found]))
  if len(points) <= _MAX_POINTS:
    return points
  return np.linspace(points[0], points[-1], _MAX_POINTS)


def _sample(series: quantities_lib.Series, grid: np.ndarray) -> np.ndarray:
  """Returns the values of a run on a grid, NaN where it has not been.

  Those that fall together are averaged by their weights, and between them lines
  are drawn.
  """
  if len(grid) == 1:
    return np.array([np.average(series.y, weights=series.weight)])
  # The nearest point of the grid takes each.
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
  """Gives columns of `[R, X]` with the same runs in them, and those runs."""
  is_there = ~np.isnan(values)
  patterns, kinds = np.unique(is_there, axis=1, return_inverse=True)
  for kind in range(patterns.shape[1]):
    runs = np.flatnonzero(patterns[:, kind])
    if len(runs):
      yield np.flatnonzero(kinds == kind), runs
