"""Manifest of a sweep's directory: `sweep.json`.

Settings are plain values by name: flags, settings of the agent with the prefix
`config.`, and of its reward model with `reward_model.`.
"""

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from repertory.agents.reward_models import reward_model_config
from repertory.components.config import regular_files
from repertory.components.config.settings import SettingError, text_of
from repertory.launch.sweeps import grid

FILE = 'sweep.json'
UNFINISHED = f'{FILE}.new'
STUDY_FILE = 'study.log'  # Journal of a study's trials.
_VERSION = 1
_STEPS = 'steps'
_SEED = re.compile(r'seed_[0-9]+')
# Flags that determine settings, by the prefix of these.
_DECIDING = {
  'config.': ('agent', 'preset'),
  reward_model_config.PREFIX: (reward_model_config.REWARD_MODEL,),
}

Settings = Mapping[str, Any]


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

  def is_done(self, run: grid.SweepRun) -> bool:
    """Whether a run succeeded, and its directory still exists."""
    path = os.path.join(self.directory, run.path)
    return self.codes.get(run.path) == 0 and os.path.isdir(path)

  def save(self) -> None:
    """Writes the file atomically."""
    unfinished = os.path.join(self.directory, UNFINISHED)
    contents = {'version': _VERSION, **dataclasses.asdict(self)}
    del contents['directory']
    with open(unfinished, 'w') as file:
      json.dump(contents, file, indent=1)
      file.flush()
      os.fsync(file.fileno())
    os.replace(unfinished, os.path.join(self.directory, FILE))


def load(directory: str) -> SweepManifest | None:
  """Reads the manifest of a directory; None if it has no sweep yet."""
  try:
    with regular_files.open_inside(directory, FILE) as file:
      found = _parse(directory, dict(json.load(file)))
    # Replaces earlier names of settings by present ones.
    update = reward_model_config.with_present_names
    found.fixed = update(found.fixed)
    found.axes = list(map(reward_model_config.renamed, found.axes))
    found.groups = {group: update(own) for group, own in found.groups.items()}
    return found
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
    return None
  except (OSError, ValueError, TypeError, RecursionError) as error:
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
  manifest.axes = [*map(str, manifest.axes)]
  for group in dict(manifest.groups):
    if group in (os.curdir, os.pardir) or os.path.basename(group) != group:
      raise ValueError(f'groups must be names of folders, got {group!r}')
    steps = manifest.settings(group).get(_STEPS)
    if not manifest.is_study and not isinstance(steps, int):
      raise ValueError(f'group {group!r} must have {_STEPS}, got {steps!r}')
  for path in dict(manifest.codes):
    group, seed = os.path.split(path)
    if group not in manifest.groups or not _SEED.fullmatch(seed):
      raise ValueError(f'codes must belong to runs of groups, got {path!r}')
  return manifest


def join(
  manifest: SweepManifest,
  asked: Sequence[tuple[grid.Combination, Settings]],
  axes: Sequence[str],
) -> list[grid.SweepRun]:
  """Adds runs to the manifest of a grid, in memory; returns them in order.

  The axes are the settings with several requested values.
  """
  if manifest.is_study:
    raise SettingError(
      'directory',
      f'must be of a sweep without --study, got {manifest.directory}, which '
      'has one with it.',
    )
  axes = list(dict.fromkeys([*manifest.axes, *axes]))
  fulls = {group: manifest.settings(group) for group in manifest.groups}
  _check_same(manifest, fulls, [settings for _, settings in asked], axes)
  grown = _grow(manifest, fulls, asked)
  runs: dict[str, grid.SweepRun] = {}
  group_of = {_key(full): group for group, full in fulls.items()}
  for combination, settings in asked:
    own = {name: v for name, v in settings.items() if name != grid.SEED}
    group = group_of.get(_key(own))
    if group is None:
      group = grid.name_group(combination, own, axes, fulls)
      group_of[_key(own)] = group
      fulls[group] = own
    run = grid.make_run(group, combination)
    if run.path in runs:
      pair = runs[run.path], run
      equal = ' and '.join(grid.distinguish(one, pair) for one in pair)
      raise SettingError('', f'Two combinations are equal: {equal}.')
    runs[run.path] = run
  left = sorted(manifest.codes.keys() - runs.keys())
  if grown and left:
    raise SettingError(
      _STEPS,
      f'must be {manifest.fixed[_STEPS]}, or all runs in {manifest.directory} '
      'must be requested, as they have that many steps; missing: '
      f'{", ".join(left[:3])}{", ..." if len(left) > 3 else ""}.',
    )
  manifest.axes = axes
  _divide(manifest, fulls)
  codes = dict.fromkeys(manifest.codes) if grown else manifest.codes
  manifest.codes = {**dict.fromkeys(runs), **codes}
  return list(runs.values())


def _divide(manifest: SweepManifest, fulls: Mapping[str, Settings]) -> None:
  """Divides settings into common ones and those of groups."""
  first, *others = fulls.values()
  manifest.fixed = {
    name: value
    for name, value in first.items()
    if name not in manifest.axes
    and all(name in other and other[name] == value for other in others)
  }
  manifest.groups = {
    group: {n: v for n, v in full.items() if n not in manifest.fixed}
    for group, full in fulls.items()
  }


def join_study(manifest: SweepManifest, settings: Settings) -> None:
  """Initializes or compares the manifest of a study."""
  if not manifest.fixed:
    manifest.is_study, manifest.fixed = True, dict(settings)
  if not manifest.is_study:
    raise SettingError(
      'directory',
      f'must be of a sweep with --study, got {manifest.directory}, which has '
      'one without it.',
    )
  there = manifest.fixed
  differences = {
    name: (there.get(name), settings.get(name))
    for name in {**there, **settings}
    if there.get(name) != settings.get(name)
  }
  if differences:
    raise _refusal(manifest.directory, differences)


def _key(settings: Settings) -> str:
  return json.dumps(settings, sort_keys=True)


def _check_same(
  manifest: SweepManifest,
  fulls: Mapping[str, Settings],
  asked: Sequence[Settings],
  axes: Sequence[str],
) -> None:
  """Refuses changed settings that are no axes of the sweep."""
  differences = {}
  for settings in asked:
    for name in settings.keys() - {*axes, grid.SEED, _STEPS}:
      deciding = [
        one
        for prefix, flags in _DECIDING.items()
        if name.startswith(prefix)
        for one in flags
      ]
      # Settings that follow from others are compared if these are the same.
      comparable = [
        full[name]
        for full in fulls.values()
        if name in full
        and all(full.get(one) == settings.get(one) for one in deciding)
      ]
      if comparable and comparable[0] != settings[name]:
        differences[name] = (comparable[0], settings[name])
  if differences:
    raise _refusal(manifest.directory, differences)


def _refusal(
  directory: str, differences: Mapping[str, tuple[Any, Any]]
) -> SettingError:
  shown = '; '.join(
    f'--{name}: {there} there, {now} now'
    for name, (there, now) in sorted(differences.items())
  )
  return SettingError(
    'directory',
    f'must be that of this sweep, or a new one, got {directory}, which has '
    f'one of other settings: {shown}. Use its settings, choose another '
    'directory, or start over (--fresh).',
  )


def _grow(
  manifest: SweepManifest,
  fulls: Mapping[str, dict[str, Any]],
  asked: Sequence[tuple[grid.Combination, Settings]],
) -> bool:
  """Raises the number of steps of all runs, if requested; returns whether."""
  if _STEPS in manifest.axes or not fulls:
    return False
  there = manifest.fixed[_STEPS]
  now = {settings[_STEPS] for _, settings in asked}
  if len(now) > 1 or now == {there}:
    return False
  (steps,) = now
  if steps < there:
    raise _refusal(manifest.directory, {_STEPS: (there, steps)})
  for full in fulls.values():
    full[_STEPS] = steps
  return True
