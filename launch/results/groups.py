"""Groups of runs that differ in the seed only, with settings and labels."""

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from repertory.launch.results import runs as runs_lib

_SEED = re.compile(f'{os.sep}seed_[0-9]+$')

_NUM_ENVIRONMENTS = 'num_environments'  # Mostly follows from other settings.
_PLAIN_BY_THEMSELVES = ('topology', 'launch_type')
_DIGITS = 4  # Of long floats in labels, unless that makes two values equal.
_SHORT = 8  # Floats of at most this number of characters are never rounded.


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
  named = [
    one
    for agent in {group.agent for group in groups}
    for one in _label([group for group in groups if group.agent == agent])
  ]
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


def _label(groups: Sequence[Group]) -> list[Group]:
  """Labels groups of an agent by settings that differ on one environment."""
  labels = [group.agent for group in groups]
  for name in _find_distinguishing(groups):
    values = {
      i: one.settings[name]
      for i, one in enumerate(groups)
      if name in one.settings
    }
    texts = [_write(name, value, _DIGITS) for value in values.values()]
    whole = [_write(name, value) for value in values.values()]
    if len(set(texts)) < len(set(whole)):
      texts = whole
    for i, text in zip(values, texts):
      labels[i] += f', {text}'
  return [
    dataclasses.replace(group, label=label)
    for group, label in zip(groups, labels)
  ]


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


def _write(name: str, value: Any, digits: int | None = None) -> str:
  if isinstance(value, (list, tuple)):
    text = ','.join(_round(one, digits) for one in value)
  elif isinstance(value, bool):
    text = str(value).lower()
  else:
    text = _round(value, digits)
  return text if name in _PLAIN_BY_THEMSELVES else f'{name}={text}'


def _round(value: Any, digits: int | None) -> str:
  text = str(value)
  if digits and isinstance(value, float) and len(text) > _SHORT:
    return f'{value:.{digits}g}'
  return text
