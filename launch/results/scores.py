"""Scores of groups of runs, from their evaluations."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from repertory.launch.results import aggregates
from repertory.launch.results import groups as groups_lib
from repertory.launch.results import runs as runs_lib


@dataclasses.dataclass(frozen=True)
class Score:
  """Scores of a group; arrays are `[R]` over the runs with evaluations."""

  group: groups_lib.Group
  last: np.ndarray
  best: np.ndarray
  # Normalized areas under the curves, up to the steps that all runs on the
  # environment have taken; NaN with fewer than two evaluations.
  area: np.ndarray
  steps: np.ndarray  # Before the last evaluations.


class Overall(NamedTuple):
  """Interquartile mean of normalized returns, and its bootstrap interval."""

  label: str
  value: float
  interval: aggregates.Interval


def score(groups: Sequence[groups_lib.Group]) -> list[Score]:
  """Returns the scores of all groups with evaluations."""
  evaluated = [
    (group, runs)
    for group in groups
    if (runs := [run for run in group.runs if run.last])
  ]
  ends: dict[str, int] = {}  # By environment.
  for group, runs in evaluated:
    for run in runs:
      end = run.evaluations[-1].steps
      ends[group.environment] = min(end, ends.get(group.environment, end))
  return [
    Score(
      group,
      last=np.array([run.evaluations[-1].episode_return for run in runs]),
      best=np.array(
        [max(one.episode_return for one in r.evaluations) for r in runs]
      ),
      area=np.array(
        [_area(run.evaluations, ends[group.environment]) for run in runs]
      ),
      steps=np.array([run.evaluations[-1].steps for run in runs]),
    )
    for group, runs in evaluated
  ]


def rank_overall(scores: Sequence[Score]) -> list[Overall]:
  """Ranks the labels that have runs on all of several environments.

  Last returns on an environment are normalized to 0 for the worst and 1 for the
  best of these runs. Empty with fewer than two environments or labels.
  """
  pooled: dict[str, list[np.ndarray]] = {}  # By environment.
  for one in scores:
    pooled.setdefault(one.group.environment, []).append(one.last)
  if len(pooled) < 2:
    return []
  tasks: dict[str, list[np.ndarray]] = {}  # By label.
  for one in scores:
    all_last = np.concatenate(pooled[one.group.environment])
    span = max(np.ptp(all_last), np.finfo(float).tiny)
    normalized = (one.last - all_last.min()) / span
    tasks.setdefault(one.group.label, []).append(normalized)
  found = [
    Overall(
      label,
      float(aggregates.interquartile_mean(np.concatenate(own))),
      aggregates.bootstrap_interval(own),
    )
    for label, own in sorted(tasks.items())
    if len(own) == len(pooled)
  ]
  return sorted(found, key=lambda one: -one.value) if len(found) > 1 else []


def _area(evaluations: Sequence[runs_lib.EvaluationRow], end: int) -> float:
  """Returns the normalized area under a curve up to a number of steps."""
  # The later one of two at the same step.
  returns = {one.steps: one.episode_return for one in evaluations}
  steps = sorted(returns)
  x = [*(step for step in steps if step < end), end]
  if len(x) < 2:
    return float('nan')
  y = np.interp(x, steps, [returns[step] for step in steps])
  return float(aggregates.area_under_curve(x, y))
