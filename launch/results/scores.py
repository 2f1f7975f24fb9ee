"""Scores of groups of runs, from their evaluations."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from repertory.launch.results import aggregates, quantities
from repertory.launch.results import groups as groups_lib
from repertory.launch.results import runs as runs_lib


@dataclasses.dataclass(frozen=True)
class Score:
  """Scores of a group; arrays are `[R]` over the runs with evaluations.

  Attributes:
    group: The group.
    last: Mean returns of the last evaluations.
    best: Mean returns of the best evaluations.
    area: Normalized areas under their curves, up to the steps that all runs on
      the environment have taken; NaN with fewer than two evaluations.
    steps: Environment steps before the last evaluations.
  """

  group: groups_lib.Group
  last: np.ndarray
  best: np.ndarray
  area: np.ndarray
  steps: np.ndarray


def score(groups: Sequence[groups_lib.Group]) -> list[Score]:
  """Returns the scores of all groups with evaluations."""
  found = []
  for group in groups:
    rivals = [one for one in groups if one.environment == group.environment]
    ends = [_evaluations(run).x for one in rivals for run in one.runs]
    end = min((x[-1] for x in ends if len(x)), default=0.0)
    runs = [run for run in group.runs if run.last is not None]
    if runs:
      found.append(
        Score(
          group,
          last=np.array([run.last.episode_return for run in runs if run.last]),
          best=np.array([run.best.episode_return for run in runs if run.best]),
          area=np.array([_area(_evaluations(run), end) for run in runs]),
          steps=np.array([run.last.steps for run in runs if run.last]),
        )
      )
  return found


@dataclasses.dataclass(frozen=True)
class Overall:
  """Score of a label over all environments.

  Attributes:
    label: Label of groups, one on each environment.
    value: Interquartile mean of normalized returns over all runs.
    interval: Its bootstrap interval; runs are drawn within their environment.
  """

  label: str
  value: float
  interval: aggregates.Interval


def rank_overall(scores: Sequence[Score]) -> list[Overall]:
  """Ranks the labels that have runs on all of several environments.

  The returns of last evaluations on an environment are normalized to 0 for the
  worst and 1 for the best of these runs, so they depend on the set of runs.

  Returns:
    The scores, the best first; [] with fewer than two environments or labels.
  """
  environments = sorted({one.group.environment for one in scores})
  if len(environments) < 2:
    return []
  spans = {}
  for name in environments:
    values = [one.last for one in scores if one.group.environment == name]
    values = np.concatenate(values)
    spans[name] = values.min(), max(np.ptp(values), np.finfo(float).tiny)
  found = []
  for label in sorted({one.group.label for one in scores}):
    tasks = {
      one.group.environment: (one.last - spans[one.group.environment][0])
      / spans[one.group.environment][1]
      for one in scores
      if one.group.label == label
    }
    if len(tasks) == len(environments):
      pooled = list(tasks.values())
      found.append(
        Overall(
          label,
          float(aggregates.interquartile_mean(np.concatenate(pooled))),
          aggregates.bootstrap_interval(pooled),
        )
      )
  return sorted(found, key=lambda one: -one.value) if len(found) > 1 else []


def _evaluations(run: runs_lib.RunRecord) -> quantities.Series:
  return quantities.choose('return', [run])[0].series(run, 'steps')


def _area(series: quantities.Series, end: float) -> float:
  """Returns the normalized area under a curve up to a number of steps."""
  x, last = np.unique(series.x[::-1], return_index=True)
  y = series.y[::-1][last]  # The later one of two at the same step.
  inside = x < end
  x, y = (
    np.append(x[inside], end),
    np.append(y[inside], np.interp(end, x, y) if len(x) else np.nan),
  )
  if len(x) < 2:
    return float('nan')
  return float(aggregates.area_under_curve(x, y))
