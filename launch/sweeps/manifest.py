"""Runs of a sweep, and the manifest of its directory: `sweep.json`.

Settings are plain values by name: flags, settings of the agent with the prefix
`config.`, and of its reward model with `reward_model.`.
"""

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from repertory.agents.interface import registry as agents_registry
from repertory.agents.reward_models import reward_model_config
from repertory.components.config import regular_files
from repertory.components.config.settings import SettingError, text_of

FILE = 'sweep.json'
UNFINISHED = f'{FILE}.new'
STUDY_FILE = 'study.log'  # Journal of a study's trials.
SEED = 'seed'
_VERSION = 1
_STEPS = 'steps'
_PATH = re.compile(r'([^/]+/)?seed_[0-9]+')  # Of a run.
_MAX_NAME = 150  # Characters; file systems take 255 bytes.
# Flags that determine settings, by the prefix of these.
_DECIDING = {'config': ('agent', 'preset'), 'reward_model': ('reward_model',)}
# The same, where the preset depends on the environment.
_DECIDING_AUTO = {
  **_DECIDING,
  'config': ('agent', 'preset', 'env'),
  'preset': ('agent', 'env'),
  'evaluation_episodes': ('agent', 'env'),
}

Settings = Mapping[str, Any]
# Text of each setting's value, by name: flags, and `config.<name>`.
Combination = Mapping[str, str]


class SweepRun(NamedTuple):
  """A run; those that differ in the seed only have the same group."""

  group: str
  path: str  # Its directory, relative to that of the sweep.
  arguments: tuple[str, ...]  # Of `train`.


def make_run(group: str, combination: Combination) -> SweepRun:
  """Makes the run of a combination and its seed."""
  path = os.path.join(group, f'seed_{combination[SEED]}')
  return SweepRun(group, path, tuple(to_arguments(combination)))


def to_arguments(combination: Combination) -> list[str]:
  """Returns the arguments of `train`."""
  return [f'--{name}={text}' for name, text in combination.items()]


@dataclasses.dataclass
class SweepManifest:
  """Settings and exit codes of a sweep's runs.

  Attributes:
    directory: Directory of the sweep.
    is_study: Whether its groups are the trials of a study.
    fixed: Settings that all runs share.
    axes: Names of settings that differ, in the order used for names of groups.
    groups: Other settings of each group of runs that differ in the seed only,
      by name of its directory.
    codes: Exit codes of runs by path; None for unfinished ones.
  """

  directory: str
  is_study: bool = False
  fixed: dict[str, Any] = dataclasses.field(default_factory=dict)
  axes: list[str] = dataclasses.field(default_factory=list)
  groups: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
  codes: dict[str, int | None] = dataclasses.field(default_factory=dict)

  def settings(self, group: str) -> dict[str, Any]:
    """Returns all settings of a group's runs, except the seed."""
    return {**self.fixed, **self.groups[group]}

  def done(self) -> set[str]:
    """Returns the paths of runs that succeeded and still exist."""
    return {
      path
      for path, code in self.codes.items()
      if code == 0 and os.path.isdir(os.path.join(self.directory, path))
    }

  def save(self) -> None:
    """Writes the file atomically; raises SettingError if it cannot."""
    path, unfinished = (
      os.path.join(self.directory, name) for name in (FILE, UNFINISHED)
    )
    contents = {'version': _VERSION, **dataclasses.asdict(self)}
    del contents['directory']
    try:
      with open(unfinished, 'w') as file:
        json.dump(contents, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
      os.replace(unfinished, path)
    except OSError as error:
      raise SettingError(
        'directory',
        f'must be writable, got {self.directory}: {path}: {error.strerror}. '
        'The same command resumes the sweep.',
      ) from error

  def add_grid(
    self,
    asked: Sequence[tuple[Combination, Settings]],
    axes: Sequence[str],
  ) -> list[SweepRun]:
    """Adds runs of a grid, in memory; returns them in order.

    The axes are the settings with several requested values. With more steps
    than before, all runs are unfinished again.
    """
    self._check_kind(is_study=False)
    axes = list(dict.fromkeys([*self.axes, *axes]))
    fulls = {group: self.settings(group) for group in self.groups}
    grown: dict[str, Any] = {}
    differences = {}
    for _, settings in asked:
      for name, (there, now) in _compare(fulls, settings, axes).items():
        if name == _STEPS and isinstance(there, int) and there < now:
          grown = {_STEPS: now}
        else:
          differences[name] = (there, now)
    self._refuse(differences)
    fulls = {group: {**full, **grown} for group, full in fulls.items()}

    def key(settings: Settings) -> str:
      return json.dumps([settings.get(axis) for axis in axes if axis != SEED])

    group_of = {key(full): group for group, full in fulls.items()}
    runs: dict[str, SweepRun] = {}
    for combination, settings in asked:
      group = group_of.get(key(settings))
      if group is None:
        own = {name: v for name, v in settings.items() if name != SEED}
        group = name_group(combination, own, axes, fulls)
        group_of[key(settings)], fulls[group] = group, own
      run = make_run(group, combination)
      runs.setdefault(run.path, run)  # Values may be equal in other words.
    first, *others = fulls.values()
    self.axes = axes
    self.fixed = {
      name: value
      for name, value in first.items()
      if all(name in other and other[name] == value for other in others)
    }
    self.groups = {
      group: {n: v for n, v in full.items() if n not in self.fixed}
      for group, full in fulls.items()
    }
    codes = dict.fromkeys(self.codes) if grown else self.codes
    self.codes = {**dict.fromkeys(runs), **codes}
    return list(runs.values())

  def add_study(self, settings: Settings) -> None:
    """Initializes or compares the settings of a study."""
    if not self.fixed:
      self.is_study, self.fixed = True, dict(settings)
    self._check_kind(is_study=True)
    self._refuse(
      {
        name: (self.fixed.get(name), value)
        for name, value in settings.items()
        if self.fixed.get(name) != value
      }
    )

  def _check_kind(self, is_study: bool) -> None:
    if self.is_study != is_study:
      asked, there = ('with', 'without') if is_study else ('without', 'with')
      raise SettingError(
        'directory',
        f'must be of a sweep {asked} --study, got {self.directory}, which has '
        f'one {there} it.',
      )

  def _refuse(self, differences: Mapping[str, tuple[Any, Any]]) -> None:
    """Raises SettingError if there are differences of settings."""
    if not differences:
      return
    shown = '; '.join(
      f'--{name}: {there} there, {now} now'
      for name, (there, now) in sorted(differences.items())
    )
    raise SettingError(
      'directory',
      f'must be that of this sweep, or a new one, got {self.directory}, which '
      f'has one of other settings: {shown}. Use its settings, choose another '
      'directory, or start over (--fresh).',
    )


def _compare(
  fulls: Mapping[str, Settings], settings: Settings, axes: Sequence[str]
) -> dict[str, tuple[Any, Any]]:
  """Returns settings that are no axes and differ from those of the groups."""
  differences = {}
  for name in settings.keys() - {*axes, SEED}:
    for full in fulls.values():
      is_auto = agents_registry.AUTO in (
        full.get('preset'),
        settings.get('preset'),
      )
      decided = _DECIDING_AUTO if is_auto else _DECIDING
      # Settings of an agent are compared with those of the same agent.
      deciding = decided.get(name.partition('.')[0], ())
      if name in full and all(
        full.get(one) == settings.get(one) for one in deciding
      ):
        if full[name] != settings[name]:
          differences[name] = (full[name], settings[name])
        break
  return differences


def name_group(
  combination: Combination,
  settings: Settings,
  axes: Sequence[str],
  taken: Mapping[str, Any],
) -> str:
  """Names a group's directory by values that were typed or else set."""
  texts = {
    axis.removeprefix('config.'): str(combination.get(axis, settings.get(axis)))
    for axis in axes
    if axis != SEED
  }
  name = ','.join(
    f'{axis}={re.sub("[^A-Za-z0-9_.+-]", "-", text)}'
    for axis, text in texts.items()
  )
  if len(name) <= _MAX_NAME and name not in taken:
    return name
  # Too long, or equal to another name after replacing characters.
  digest = hashlib.sha256(repr(sorted(settings.items())).encode()).hexdigest()
  return f'{name[:_MAX_NAME]}-{digest[:8]}'


def load(directory: str) -> SweepManifest:
  """Reads the manifest of a directory; a new one if it has no sweep yet."""
  try:
    with regular_files.open_inside(directory, FILE) as file:
      return _parse(directory, dict(json.load(file)))
  except FileNotFoundError:
    found = [
      name
      for name in ('checkpoints', 'logs')
      if os.path.exists(os.path.join(directory, name))
    ]
    if found:
      raise SettingError(
        'directory',
        f'must be that of a sweep, or a new one, got {directory}, which is '
        f'that of a run, with {" and ".join(found)}.',
      ) from None
    return SweepManifest(directory)
  except (
    OSError, ValueError, TypeError, AttributeError, RecursionError
  ) as error:  # fmt: skip
    raise SettingError(
      'directory',
      f'must be that of a sweep, or a new one, got {directory}, where '
      f'{os.path.join(directory, FILE)} cannot be read: {text_of(error)}. '
      'Restore it, or choose another directory.',
    ) from error


def _parse(directory: str, contents: dict[str, Any]) -> SweepManifest:
  """Makes a manifest whose runs stay inside the sweep's directory."""
  version = contents.pop('version', None)
  if version != _VERSION:
    raise ValueError(f'its version must be {_VERSION}, got {version!r}')
  manifest = SweepManifest(directory, **contents)
  folders = [os.path.join(group, 'seed_0') for group in manifest.groups]
  for path in (*folders, *manifest.codes):
    if not _PATH.fullmatch(path) or path.startswith(('./', '../')):
      raise ValueError(f'its runs must be in folders in it, got {path!r}')
  # Replaces earlier names of settings by present ones.
  update = reward_model_config.with_present_names
  manifest.fixed = update(manifest.fixed)
  manifest.axes = list(map(reward_model_config.renamed, manifest.axes))
  manifest.groups = {name: update(own) for name, own in manifest.groups.items()}
  for path in manifest.codes:
    if os.path.dirname(path) not in manifest.groups:
      raise ValueError(f'its runs must be of its groups, got {path!r}')
  return manifest
