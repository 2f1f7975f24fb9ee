"""Runs that are equal but for their seeds, and what tells groups apart."""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from repertory.launch.records import labels
from repertory.launch.records import runs as runs_lib

_PREFIX = 'config.'

# How directories end that are named by their seed.
_SEED = re.compile(f'{os.sep}seed_[0-9]+$')


@dataclasses.dataclass(frozen=True)
class Group:
  """Runs of one agent on one environment with the same settings.

  Attributes:
    agent: Name of the agent.
    environment: Name of the environment.
    settings: What they have in common: settings, and where they run.
    runs: One for each seed, by seed.
    label: The agent, with what tells it from other groups of that agent.
  """

  agent: str
  environment: str
  settings: Mapping[str, Any]
  runs: Sequence[runs_lib.Run]
  label: str


class Grouped(NamedTuple):
  """Runs in groups.

  Attributes:
    groups: Sorted by label, then environment.
    notes: What was left out, in words.
  """

  groups: Sequence[Group]
  notes: Sequence[str]

  @property
  def labels(self) -> list[str]:
    """All labels, in order, each once."""
    return list(dict.fromkeys(group.label for group in self.groups))

  @property
  def environments(self) -> list[str]:
    """All environments, sorted, each once."""
    return sorted({group.environment for group in self.groups})


def group(runs: Sequence[runs_lib.Run]) -> Grouped:
  """Puts runs together that are equal but for the seed.

  Equal in agent, environment, all settings of the agent, number of
  environments, topology and launcher, and in what they began with: networks of
  other runs, which may differ by the seed as well. How long they are does not
  matter, for no agent learns otherwise in a longer run. Of two of the same seed
  the one that came further counts. Runs that have not begun are left out.
  """
  notes = []
  found: dict[str, dict[int, runs_lib.Run]] = {}
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
      f'{less.directory} is of the same seed and settings as {more.directory}, '
      'which came further'
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


def describe(run: runs_lib.Run) -> dict[str, Any]:
  """Returns all that runs of a group have in common, in one mapping.

  The names of an agent's settings are without 'config.' before them.
  """
  wiring = dict(run.wiring)
  settings = {
    name.removeprefix(_PREFIX): value for name, value in run.settings.items()
  }
  if run.topology is not None:
    settings['topology'] = run.topology
  for name in ('topology_settings', 'launch_settings'):
    settings.update(wiring.pop(name, None) or {})
  if run.initial_from is not None:
    settings['initial_from'] = _without_seed(run.initial_from)
  return {**settings, **wiring}


def _without_seed(directory: str) -> str:
  """Returns the folder of runs that differ by the seed, of one of them."""
  try:
    path = _SEED.sub('', os.path.realpath(directory))
  except ValueError:  # It has a zero byte, or is not Unicode: no path.
    return directory
  near = os.path.relpath(path)
  return path if near.startswith(os.pardir) else near


def _key(run: runs_lib.Run) -> str:
  return labels.freeze([run.agent, run.environment, describe(run)])


def compare(groups: Sequence[Group]) -> dict[str, list[Any]]:
  """Returns settings that differ in a way that says something.

  Those that differ between groups of one agent, and of those that all groups
  have any that differ; what only another agent has at all says nothing.
  """
  found = labels.differences([group.settings for group in groups])
  telling = set()
  for agent in {group.agent for group in groups}:
    own = [group.settings for group in groups if group.agent == agent]
    telling.update(labels.differences(own))
  return {
    name: values
    for name, values in found.items()
    if name in telling or all(name in group.settings for group in groups)
  }
