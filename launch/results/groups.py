"""Groups of runs that differ in the seed only, and their settings."""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from repertory.launch.results import labels
from repertory.launch.results import runs as runs_lib

_PREFIX = 'config.'

# Ending of directories named by their seed.
_SEED = re.compile(f'{os.sep}seed_[0-9]+$')


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
  label: str


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
    members = found.setdefault(_key(run), {})
    seed = run.seed or 0
    other = members.get(seed)
    if other is None:
      members[seed] = run
      continue
    less, more = sorted([other, run], key=lambda one: one.steps or 0)
    members[seed] = more
    notes.append(
      f'{less.directory} has the same seed and settings as {more.directory}, '
      'which has more steps'
    )
  groups = [
    [members[seed] for seed in sorted(members)] for members in found.values()
  ]
  settings = [describe(members[0]) for members in groups]
  names = labels.name(
    [
      labels.Named(members[0].agent or '', members[0].environment, own)
      for members, own in zip(groups, settings)
    ]
  )
  made = [
    Group(
      members[0].agent or '',
      members[0].environment or '',
      own,
      members,
      label,
    )
    for members, own, label in zip(groups, settings, names)
  ]
  made.sort(key=lambda one: (one.label, one.environment))
  return Grouped(made, notes)


def describe(run: runs_lib.RunRecord) -> dict[str, Any]:
  """Returns the settings that runs of a group share, in one mapping.

  Names of an agent's settings lack the prefix 'config.'.
  """
  layout = dict(run.wiring)
  settings = {
    name.removeprefix(_PREFIX): value for name, value in run.settings.items()
  }
  if run.topology is not None:
    settings['topology'] = run.topology
  for name in ('topology_settings', 'launch_settings'):
    settings.update(layout.pop(name, None) or {})
  if run.initial_from is not None:
    settings['initial_from'] = _without_seed(run.initial_from)
  return {**settings, **layout}


def _without_seed(directory: str) -> str:
  """Returns the common folder of a run and its siblings of other seeds."""
  try:
    path = _SEED.sub('', os.path.realpath(directory))
  except ValueError:  # It has a zero byte, or is not Unicode: no path.
    return directory
  near = os.path.relpath(path)
  return path if near.startswith(os.pardir) else near


def _key(run: runs_lib.RunRecord) -> str:
  return labels.freeze([run.agent, run.environment, describe(run)])


def compare(groups: Sequence[Group]) -> dict[str, list[Any]]:
  """Returns the settings whose differences are informative.

  These are settings that differ between groups of one agent, and settings of
  all groups that differ. Settings that only another agent has are left out.
  """
  found = labels.differences([group.settings for group in groups])
  informative = set()
  for agent in {group.agent for group in groups}:
    own = [group.settings for group in groups if group.agent == agent]
    informative.update(labels.differences(own))
  return {
    name: values
    for name, values in found.items()
    if name in informative or all(name in group.settings for group in groups)
  }
