"""Runs that are equal but for their seeds, and what tells groups apart."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from repertory.launch.records import runs as runs_lib

# Tables are long, and follow from the settings.
_DERIVED = 'table.'
_PREFIX = 'config.'
# Goes along with other settings, mostly.
_NUM_ENVIRONMENTS = 'num_environments'
_PLAIN_BY_THEMSELVES = ('topology', 'launch_type')

_Settings = Mapping[str, Any]


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
  environments, topology, launcher, and the run with whose networks they began;
  how long they are does not matter. Of two
  of the same seed the one that came further counts. Runs that have not begun
  are left out.
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
      f'{less.directory} is of the same seed and settings as {more.directory}'
    )
  groups = [
    [members[seed] for seed in sorted(members)] for members in found.values()
  ]
  settings = [describe(members[0]) for members in groups]
  made = [
    Group(
      members[0].agent or '',
      members[0].environment or '',
      own,
      members,
      label,
    )
    for members, own, label in zip(groups, settings, _labels(groups, settings))
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
  if run.initial_from is not None:
    settings['initial_from'] = run.initial_from
  for name in ('topology_settings', 'launch_settings'):
    settings.update(wiring.pop(name, {}))
  return {**settings, **wiring}


def differences(
  settings: Sequence[Mapping[str, Any]],
) -> dict[str, list[Any]]:
  """Returns what differs between mappings: by name, the value of each.

  Tables are left out, which follow from the rest, unless nothing else differs.
  """
  names = dict.fromkeys(name for one in settings for name in one)
  found = {}
  for name in names:
    values = [one.get(name) for one in settings]
    if any(value != values[0] for value in values):
      found[name] = values
  plain = {n: v for n, v in found.items() if not n.startswith(_DERIVED)}
  return plain or found


def _key(run: runs_lib.Run) -> str:
  return _freeze([run.agent, run.environment, describe(run)])


def compare(groups: Sequence[Group]) -> dict[str, list[Any]]:
  """Returns settings that differ in a way that says something.

  Those that differ between groups of one agent, and of those that all groups
  have any that differ; what only another agent has at all says nothing.
  """
  found = differences([group.settings for group in groups])
  telling = set()
  for agent in {group.agent for group in groups}:
    own = [group.settings for group in groups if group.agent == agent]
    telling.update(differences(own))
  return {
    name: values
    for name, values in found.items()
    if name in telling or all(name in group.settings for group in groups)
  }


def _labels(
  groups: Sequence[Sequence[runs_lib.Run]], settings: Sequence[_Settings]
) -> list[str]:
  """Names groups by their agents, and by what differs on one environment."""
  labels = [''] * len(groups)
  agents = [members[0].agent or '' for members in groups]
  for agent in set(agents):
    indices = [i for i, other in enumerate(agents) if other == agent]
    places: dict[Any, list[_Settings]] = {}
    for i in indices:
      rivals = places.setdefault(groups[i][0].environment, [])
      rivals.append(settings[i])
    telling = _find_telling(list(places.values()))
    for i in indices:
      told = [_tell(n, settings[i][n]) for n in telling if n in settings[i]]
      labels[i] = ', '.join([agent, *told])
  return labels


def _find_telling(places: Sequence[Sequence[_Settings]]) -> list[str]:
  """Returns the settings by which those of each place can be told apart.

  What only some of them have at all, such as settings of a topology, and the
  number of environments are among them only if they need to be.
  """
  telling: dict[str, None] = {}
  optional: dict[str, None] = {}
  for rivals in places:
    for name in differences(rivals):
      values = [_freeze(one[name]) for one in rivals if name in one]
      is_plain = len(set(values)) > 1 and name != _NUM_ENVIRONMENTS
      (telling if is_plain else optional)[name] = None

  def are_told_apart(rivals):
    keys = [_freeze({n: one[n] for n in telling if n in one}) for one in rivals]
    return len(set(keys)) == len(keys)

  for name in optional:
    if not all(map(are_told_apart, places)):
      telling[name] = None
  return list(telling)


def _tell(name: str, value: Any) -> str:
  if name in _PLAIN_BY_THEMSELVES:
    return str(value)
  if isinstance(value, (list, tuple)):
    value = ','.join(map(str, value))
  return f'{name}={str(value).lower() if isinstance(value, bool) else value}'


def _freeze(value: Any) -> str:
  return json.dumps(value, sort_keys=True, default=str)
