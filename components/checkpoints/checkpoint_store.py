"""Storage of a run: stores of atomic checkpoints, and a lock.

A checkpoint is a folder `<number>-<unique>/` with the files of a local
checkpoint, and a manifest, `<number>-<unique>.json`, that lists them. The
manifest is written last and removed first. So a checkpoint with a manifest is
complete, even on object stores, which cannot rename. A folder without one is
left over from an interrupted run.
"""

import contextlib
import dataclasses
import datetime
import json
import os
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from repertory.components.checkpoints import (
  checkpointing,
  storage_folder,
  storage_lock,
)
from repertory.components.config.settings import SettingError

# Version of manifests; readers reject others.
_FORMAT = 1
_SUFFIX = '.json'
_NAME = re.compile(r'[0-9]{8,}-[0-9a-f]{8}')


@dataclasses.dataclass(frozen=True)
class CheckpointManifest:
  """Description of a stored checkpoint.

  Attributes:
    path: Location, for messages.
    name: Name of the folder.
    learner_steps: Updates so far.
    steps: Environment steps so far.
    episode_return: Return of its evaluation, for the best policy.
    experiment: Settings that a resumed run must match.
    files: 'size' and 'crc32' by file name.
  """

  path: str
  name: str
  learner_steps: int
  steps: int
  episode_return: float | None
  experiment: Mapping[str, Any]
  files: Mapping[str, Mapping[str, Any]]

  @property
  def number(self) -> int:
    """Number, which is larger than those of all earlier checkpoints."""
    return _number(self.name)

  @property
  def num_bytes(self) -> int:
    return sum(file['size'] for file in self.files.values())

  @property
  def state(self) -> Mapping[str, Any]:
    """Part of the state of the checkpoint, see `checkpointing.Checkpoint`."""
    return {
      'experiment': self.experiment,
      'counts': {'learner_steps': self.learner_steps, 'steps': self.steps},
      'evaluation': {'episode_return': self.episode_return},
    }


class CheckpointStore:
  """Checkpoints of one kind, in a subfolder of a storage.

  Checkpoints have unique names: two runs that write at the same time do not
  corrupt each other's files.
  """

  def __init__(
    self, folder: storage_folder.StorageFolder, name: str, shown: str
  ):
    self._folder = folder
    self._name = name
    self._shown = f'{shown}/{name}'

  def names(self) -> list[str]:
    """Returns the names of complete checkpoints, the newest last."""
    found = self._folder.names(self._name)
    names = [n.removesuffix(_SUFFIX) for n in found if n.endswith(_SUFFIX)]
    return sorted(filter(_NAME.fullmatch, names), key=_number)

  def newest(self) -> CheckpointManifest | None:
    """Reads the manifest of the newest checkpoint; raises if it is damaged."""
    for name in self.names()[-1:]:
      content = self._folder.read(self._path(name + _SUFFIX))
      try:
        return self._parse(name, json.loads(content))
      except (ValueError, KeyError, TypeError) as error:
        why = f'its manifest was damaged: {type(error).__name__}: {error}'
        raise self._unreadable(name, why) from error
    return None

  def add(self, source: str, check: Callable[[], None]) -> CheckpointManifest:
    """Stores a local checkpoint.

    The checkpoint is complete when this returns. If the newest one is equal,
    nothing is done. On errors the files are removed if possible.

    Args:
      source: Folder of the checkpoint, which must not change meanwhile.
      check: Raises an error if the checkpoint must not be stored; called before
        each file, of which the manifest is the last.

    Raises:
      CheckpointError: If the local checkpoint is damaged.
    """
    described = checkpointing.describe_file(source, checkpointing.CHECKSUMS)
    files = {
      **checkpointing.read_checksums(source),
      checkpointing.CHECKSUMS: described,
    }
    newest = self.newest()
    if newest is not None and newest.files == files:
      return newest
    if damage := checkpointing.find_damage(source, files):
      raise checkpointing.CheckpointError(f'{source}: {damage}.')
    with open(os.path.join(source, checkpointing.STATE)) as file:
      state = json.load(file)
    number = int(os.path.basename(source))
    number = max(number, newest.number + 1 if newest else 0)
    name = f'{number:08d}-{uuid.uuid4().hex[:8]}'
    content = {
      'format': _FORMAT,
      'learner_steps': int(state['counts']['learner_steps']),
      'steps': int(state['counts']['steps']),
      'episode_return': state.get('evaluation', {}).get('episode_return'),
      'experiment': state['experiment'],
      'files': files,
    }
    try:
      for file in sorted(files):
        check()
        path = os.path.join(source, file)
        self._folder.upload(path, self._path(f'{name}/{file}'))
      self._folder.sync(self._path(name))
      check()
      text = json.dumps(content, indent=2)
      self._folder.publish(self._path(name + _SUFFIX), text.encode())
    except Exception:
      with contextlib.suppress(Exception):  # Otherwise the next run does it.
        self._remove(name)
      raise
    return self._parse(name, content)

  def fetch(self, manifest: CheckpointManifest, folder: str) -> None:
    """Copies a checkpoint to a new local folder, and verifies all files."""
    for name in sorted(manifest.files):
      path = os.path.join(folder, name)
      os.makedirs(os.path.dirname(path), exist_ok=True)
      try:
        self._folder.download(self._path(f'{manifest.name}/{name}'), path)
      except FileNotFoundError as error:
        raise self._unreadable(manifest.name, f'{name} is missing') from error
    if damage := checkpointing.find_damage(folder, manifest.files):
      raise self._unreadable(manifest.name, damage)

  def keep_newest(self, count: int) -> None:
    """Removes all complete checkpoints but the newest `count`."""
    for name in self.names()[:-count]:
      self._remove(name)

  def remove_unfinished(self) -> None:
    """Removes remains of interrupted writes and removals."""
    found = self._folder.names(self._name)
    for name in found:
      is_part = _NAME.fullmatch(name) and name + _SUFFIX not in found
      if is_part or name.endswith(storage_folder.UNFINISHED):
        self._folder.remove(self._path(name))

  def move_into(self, folder: str) -> bool:
    """Moves checkpoints into a folder of the storage; returns if any."""
    if has_any := bool(self.names()):
      self._folder.move(self._name, f'{folder}/{self._name}')
    return has_any

  def _remove(self, name: str) -> None:
    self._folder.remove(self._path(name + _SUFFIX))
    self._folder.remove(self._path(name))

  def _parse(self, name: str, content: Any) -> CheckpointManifest:
    fields = dict(content)
    if (found := fields.pop('format')) != _FORMAT:
      raise ValueError(f'it has format {found}, this version reads {_FORMAT}')
    for file in fields['files']:
      parts = file.split('/')
      if any(p in ('', '.', '..') or '\\' in p or '\0' in p for p in parts):
        raise ValueError(f'the file {file!r} would be outside its folder')
    return CheckpointManifest(f'{self._shown}/{name}', name, **fields)

  def _unreadable(self, name: str, why: str) -> checkpointing.CheckpointError:
    names = self.names()
    older = names[: names.index(name)] if name in names else []
    then = f'to resume from {older[-1]}' if older else 'to start without it'
    return checkpointing.CheckpointError(
      f'Checkpoint {self._shown}/{name} cannot be read: {why}. Remove '
      f'{self._shown}/{name}{_SUFFIX} {then}.',
      fresh=True,
    )

  def _path(self, name: str) -> str:
    return f'{self._name}/{name}'


class Storage:
  """Storage for the checkpoints of a run, besides its directory.

  Attributes:
    shown: Name of the storage, for messages.
    checkpoints: Checkpoints to resume training from.
    best: Policy of the best evaluation.
    lock: Ownership of the storage.
  """

  def __init__(self, storage: str, directory: str):
    """Opens the storage, without access.

    Raises:
      SettingError: If the storage is invalid, or inside the run's directory.
    """
    self.shown = storage_folder.without_secrets(storage).rstrip('/') or '/'
    self._folder = storage_folder.StorageFolder(storage)
    path = self._folder.local_path
    if path is not None:
      outer, inner = os.path.realpath(directory), os.path.realpath(path)
      if os.path.commonpath([outer, inner]) == outer:
        raise SettingError(
          'storage',
          f"must be apart from the run's directory {directory}, got {storage}, "
          'which is that directory or inside it.',
        )
    self.checkpoints = CheckpointStore(self._folder, 'checkpoints', self.shown)
    self.best = CheckpointStore(self._folder, 'best', self.shown)
    # Used in another thread, so with a folder of its own.
    self.lock = storage_lock.StorageLock(
      storage_folder.StorageFolder(storage), self.shown, directory
    )

  def move_aside(self) -> str:
    """Moves checkpoints into a new subfolder; returns it, or '' without any."""
    aside = f'aside-{datetime.datetime.now():%Y%m%d-%H%M%S.%f}'
    moved = [one.move_into(aside) for one in (self.checkpoints, self.best)]
    return f'{self.shown}/{aside}' if any(moved) else ''

  def remove_unfinished(self) -> None:
    """Removes incomplete files of a run that was killed."""
    for name in self._folder.names(''):
      if name.endswith(storage_folder.UNFINISHED):
        self._folder.remove(name)
    self.checkpoints.remove_unfinished()
    self.best.remove_unfinished()


def _number(name: str) -> int:
  return int(name.partition('-')[0])
