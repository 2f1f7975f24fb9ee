"""Groups of runs that differ in the seed only: labels, settings and scores."""

import dataclasses
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory.launch.results import aggregates
from repertory.launch.results import runs as runs_lib

_SEED = re.compile(f'{os.sep}seed_[0-9]+$')

_NUM_ENVIRONMENTS = 'num_environments'  # Mostly follows from other settings.
_PLAIN_BY_THEMSELVES = ('topology', 'launch_type')


@dataclasses.dataclass(frozen=True)
class Group:
  """Runs of one agent on one environment with the same settings.

  Attributes:
    agent: Name of the agent.
    environment: Name of the environment.
    settings: Common settings of agent, topology and launcher.
    runs: One run for each seed, sorted by seed.
    label: The agent, and settings that distinguish the group from others of it.
  """

  agent: str
  environment: str
  settings: Mapping[str, Any]
  runs: Sequence[runs_lib.RunRecord]
  label: str = ''


class Grouped(NamedTuple):
  """Runs in groups.

  Attributes:
    groups: Sorted by label, then environment.
    notes: Descriptions of runs that were left out.
  """

  groups: Sequence[Group]
  notes: Sequence[str]

  @property
  def labels(self) -> list[str]:
    """Unique labels, in order."""
    return list(dict.fromkeys(group.label for group in self.groups))

  @property
  def environments(self) -> list[str]:
    """Unique environments, sorted."""
    return sorted({group.environment for group in self.groups})


def group(runs: Sequence[runs_lib.RunRecord]) -> Grouped:
  """Groups runs that differ in the seed only.

  They must agree in agent, environment, all settings of the agent, number of
  environments, topology, launcher, and the run whose networks they began with,
  which may differ in the seed as well. Lengths may differ, as no agent depends
  on them. Of two runs of one seed, the one with more steps counts. Runs without
  steps are left out.
  """
  notes = []
  found: dict[str, dict[int, runs_lib.RunRecord]] = {}
  for run in sorted(runs, key=lambda run: run.directory):
    if run.agent is None or run.environment is None or not run.steps:
      notes.append(f'{run.directory} has no steps yet')
      continue
    key = _freeze([run.agent, run.environment, _describe_run(run)])
    members = found.setdefault(key, {})
    seed = run.seed or 0
    other = members.setdefault(seed, run)
    if other is not run:
      less, more = sorted([other, run], key=lambda one: one.steps or 0)
      members[seed] = more
      notes.append(
        f'{less.directory} has the same seed and settings as {more.directory}, '
        'which has more steps'
      )
  groups = []
  for members in found.values():
    first, *_ = own = [members[seed] for seed in sorted(members)]
    agent, environment = first.agent or '', first.environment or ''
    groups.append(Group(agent, environment, _describe_run(first), own))
  # Rounded, unless that makes two labels equal.
  named = max(
    (list(_name(groups, longest)) for longest in (8, 99)),
    key=lambda named: len({one.label for one in named}),
  )
  named.sort(key=lambda one: (one.label, one.environment))
  return Grouped(named, notes)


def _describe_run(run: runs_lib.RunRecord) -> dict[str, Any]:
  """Returns the settings that runs of a group share, without 'config.'."""
  settings = {
    name.removeprefix('config.'): value for name, value in run.settings.items()
  }
  if run.topology is not None:
    settings['topology'] = run.topology
  for name, value in run.wiring.items():
    settings.update(value if isinstance(value, dict) else {name: value})
  if run.initial_from is not None:
    settings['initial_from'] = _without_seed(run.initial_from)
  return settings


def _without_seed(directory: str) -> str:
  """Returns the common folder of a run and its siblings of other seeds."""
  try:
    path = _SEED.sub('', os.path.realpath(directory))
  except ValueError:  # It has a zero byte, or is not Unicode: no path.
    return directory
  near = os.path.relpath(path)
  return path if near.startswith(os.pardir) else near


def compare(groups: Sequence[Group]) -> dict[str, list[Any]]:
  """Returns the settings whose differences are informative.

  These are settings that differ between groups of one agent, and settings of
  all groups that differ. Settings that only another agent has are left out.
  """
  informative = set()
  for agent in {group.agent for group in groups}:
    informative.update(_differences([g for g in groups if g.agent == agent]))
  return {
    name: values
    for name, values in _differences(groups).items()
    if name in informative or all(name in group.settings for group in groups)
  }


def _differences(groups: Sequence[Group]) -> dict[str, list[Any]]:
  """Returns the settings that differ, with the values of all groups."""
  found = {}
  for name in dict.fromkeys(name for one in groups for name in one.settings):
    values = [one.settings.get(name) for one in groups]
    if any(value != values[0] for value in values):
      found[name] = values
  # Tables are long, and follow from other settings.
  plain = {n: v for n, v in found.items() if not n.startswith('table.')}
  return plain or found


def _freeze(value: Any) -> str:
  """Serializes plain values, equal ones to equal text."""
  return json.dumps(value, sort_keys=True, default=str)


def _name(groups: Sequence[Group], longest: int) -> Iterator[Group]:
  """Labels groups by agent and distinguishing settings.

  Floats of more than `longest` characters are rounded.
  """
  for agent in {group.agent for group in groups}:
    own = [group for group in groups if group.agent == agent]
    names = _find_distinguishing(own)
    for one in own:
      given = one.settings
      texts = [_write(n, given[n], longest) for n in names if n in given]
      yield dataclasses.replace(one, label=', '.join([agent, *texts]))


def _find_distinguishing(groups: Sequence[Group]) -> list[str]:
  """Returns the settings that distinguish groups of each environment.

  Settings that only some groups have, such as those of a topology, and the
  number of environments are included only if necessary.
  """
  by_environment: dict[str, list[Group]] = {}
  for one in groups:
    by_environment.setdefault(one.environment, []).append(one)
  distinguishing: dict[str, None] = {}
  optional: dict[str, None] = {}
  for rivals in by_environment.values():
    for name in _differences(rivals):
      values = {
        _freeze(one.settings[name]) for one in rivals if name in one.settings
      }
      is_plain = len(values) > 1 and name != _NUM_ENVIRONMENTS
      (distinguishing if is_plain else optional)[name] = None

  def are_distinguished(rivals):
    keys = {
      _freeze({n: one.settings.get(n) for n in distinguishing})
      for one in rivals
    }
    return len(keys) == len(rivals)

  if 'reward_model' in distinguishing:  # Implies different builders.
    distinguishing.pop('builder', None)
  for name in optional:
    if not all(map(are_distinguished, by_environment.values())):
      distinguishing[name] = None
  return list(distinguishing)


def _write(name: str, value: Any, longest: int) -> str:
  def write(one: Any) -> str:
    if isinstance(one, float) and len(str(one)) > longest:
      return f'{one:.4g}'
    return str(one).lower() if isinstance(one, bool) else str(one)

  parts = value if isinstance(value, (list, tuple)) else [value]
  text = ','.join(map(write, parts))
  return text if name in _PLAIN_BY_THEMSELVES else f'{name}={text}'


@dataclasses.dataclass(frozen=True)
class Score:
  """Scores of a group; arrays are `[R]` over the runs with evaluations."""

  group: Group
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


def score(groups: Sequence[Group]) -> list[Score]:
  """Returns the scores of all groups with evaluations."""
  found = []
  ends: dict[str, int] = {}  # Fewest steps of a run, by environment.
  for group in groups:
    evaluated = [run.evaluations for run in group.runs if run.last]
    if evaluated:
      found.append((group, evaluated))
      name = group.environment
      steps = [rows[-1].steps for rows in evaluated]
      ends[name] = min(*steps, ends.get(name, steps[0]))
  return [
    Score(
      group,
      last=np.array([rows[-1].episode_return for rows in evaluated]),
      best=np.array(
        [max(one.episode_return for one in rows) for rows in evaluated]
      ),
      area=np.array(
        [_area(rows, ends[group.environment]) for rows in evaluated]
      ),
      steps=np.array([rows[-1].steps for rows in evaluated]),
    )
    for group, evaluated in found
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
