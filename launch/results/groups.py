"""Groups of runs that differ in the seed only: labels, settings and scores."""

import collections
import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory.launch.results import runs as runs_lib

_SEED = re.compile(f'{os.sep}seed_[0-9]+$')

# Settings that mostly follow from others, so they are last in labels.
_DERIVED = ('num_environments', 'builder', 'table.')
_WITHOUT_NAMES = ('topology', 'launch_type')  # In labels.


@dataclasses.dataclass
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
  settings: dict[str, dict[str, Any]] = {}
  found: dict[str, dict[int, runs_lib.RunRecord]] = {}  # Runs by seed.
  for run in sorted(runs, key=lambda run: (-(run.steps or 0), run.directory)):
    if run.agent is None or run.environment is None or not run.steps:
      notes.append(f'{run.directory} has no steps yet')
      continue
    its_settings = _describe_run(run)
    key = _freeze([run.agent, run.environment, its_settings])
    settings[key] = its_settings
    other = found.setdefault(key, {}).setdefault(run.seed or 0, run)
    if other is not run:
      notes.append(
        f'{run.directory} has the same seed and settings as {other.directory}, '
        'which has more steps'
      )
  groups = []
  for key, members in found.items():
    own = [members[seed] for seed in sorted(members)]
    agent, environment = own[0].agent or '', own[0].environment or ''
    groups.append(Group(agent, environment, settings[key], own))
  for agent in {one.agent for one in groups}:
    _name([one for one in groups if one.agent == agent])
  groups.sort(key=lambda one: (one.label, one.environment))
  return Grouped(groups, notes)


def _describe_run(run: runs_lib.RunRecord) -> dict[str, Any]:
  """Returns the settings that runs of a group share, without 'config.'."""
  settings = {'reward_model': None, 'topology': run.topology}
  for name, value in run.settings.items():
    settings[name.removeprefix('config.')] = value
  initial = run.initial_from  # Without the seed.
  if initial is not None:
    initial = os.path.relpath(_SEED.sub('', os.path.abspath(initial)))
  return {**settings, 'initial_from': initial}


def compare(groups: Sequence[Group]) -> dict[str, list[Any]]:
  """Returns the settings that differ, with the values of all groups.

  Settings that only another agent has are left out, and None in its place.
  """
  return {
    name: [one.settings.get(name) for one in groups]
    for name in _differing(groups)
    if not name.startswith('table.')  # Long, and they follow from others.
  }


def _differing(groups: Sequence[Group]) -> list[str]:
  """Returns the settings with different values in those groups that have it."""
  values: dict[str, set[str]] = {}
  for one in groups:
    for name, value in one.settings.items():
      values.setdefault(name, set()).add(_freeze(value))
  return [name for name, different in values.items() if len(different) > 1]


def _freeze(value: Any) -> str:
  """Serializes plain values, equal ones to equal text."""
  return json.dumps(value, sort_keys=True, default=str)


def _name(groups: Sequence[Group]) -> None:
  """Labels the groups of an agent by settings that differ on an environment."""
  names: dict[str, None] = {}
  for environment in {one.environment for one in groups}:
    rivals = [one for one in groups if one.environment == environment]
    names.update(dict.fromkeys(_differing(rivals)))
  first = [name for name in names if not name.startswith(_DERIVED)]
  for chosen in (first, list(names)):
    for one in groups:
      texts = [_write(name, one.settings.get(name)) for name in chosen]
      one.label = ', '.join(filter(None, [one.agent, *texts]))
    if len({(one.label, one.environment) for one in groups}) == len(groups):
      break
  known: collections.Counter[tuple[str, str]] = collections.Counter()
  for one in groups:  # Some lack a setting of others.
    known[one.label, one.environment] += 1
    if (number := known[one.label, one.environment]) > 1:
      one.label += f' ({number})'


def _write(name: str, value: Any) -> str:
  """Formats a setting for a label; None is omitted."""
  if value is None:
    return ''
  if isinstance(value, (list, tuple)):
    text = ','.join(map(str, value))
  else:
    text = str(value).lower() if isinstance(value, bool) else str(value)
  return text if name in _WITHOUT_NAMES else f'{name}={text}'


class Score(NamedTuple):
  """Returns of a group; arrays are `[R]` over the runs with evaluations."""

  group: Group
  last: np.ndarray
  best: np.ndarray


def score(groups: Sequence[Group]) -> list[Score]:
  """Returns the scores of all groups with evaluations."""
  found = []
  for one in groups:
    pairs = [(run.last, run.best) for run in one.runs]
    returns = [
      (last.episode_return, best.episode_return)
      for last, best in pairs
      if last is not None and best is not None
    ]
    if returns:
      found.append(Score(one, *np.array(returns).T))
  return found
