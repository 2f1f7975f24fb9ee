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
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
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
_NAME = re.compile(r'([0-9]{8,})-[0-9a-f]{8}')
_CHECKPOINTS, _BEST = 'checkpoints', 'best'

# Callback with the number of bytes of each piece of a file.
Count = Callable[[int], None]


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
    return _order(self.name)[0]

  @property
  def num_bytes(self) -> int:
    return sum(file['size'] for file in self.files.values())

  @property
  def progress(self) -> tuple[int, int]:
    """Progress of training, as a sort key: newer checkpoints are larger."""
    return self.learner_steps, self.steps


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
    self._shown = shown

  def names(self) -> list[str]:
    """Returns the names of complete checkpoints, the newest last."""
    found = self._folder.names(self._name)
    names = [n.removesuffix(_SUFFIX) for n in found if n.endswith(_SUFFIX)]
    return sorted(filter(_NAME.fullmatch, names), key=_order)

  def newest(self) -> CheckpointManifest | None:
    """Reads the manifest of the newest checkpoint; raises if it is damaged."""
    names = self.names()
    if not names:
      return None
    chunks = self._folder.read(self._path(names[-1] + _SUFFIX))
    try:
      return self._parse(names[-1], json.loads(b''.join(chunks)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
      why = f'its manifest was damaged: {type(error).__name__}: {error}'
      raise self._unreadable(names[-1], why) from error

  def add(
    self, source: str, check: Callable[[], None], count: Count
  ) -> CheckpointManifest:
    """Stores a local checkpoint.

    The checkpoint is complete when this returns. If the newest one is equal,
    nothing is done. On errors the files are removed if possible.

    Args:
      source: Folder of the checkpoint, which must not change meanwhile.
      check: Raises an error if the checkpoint must not be stored; called before
        the manifest is written.
      count: Callback with the number of bytes of each piece of a file.

    Raises:
      CheckpointError: If the local checkpoint is damaged.
    """
    files, state = _describe(source)
    newest = self.newest()
    if newest is not None and newest.files == files:
      return newest
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
      for file, expected in sorted(files.items()):
        path = os.path.join(source, *file.split('/'))
        with open(path, 'rb') as opened:
          pieces = iter(lambda: opened.read(storage_folder.CHUNK_BYTES), b'')
          chunks = _verified(pieces, expected, path, count)
          self._folder.write(self._path(f'{name}/{file}'), chunks)
      check()
      text = json.dumps(content, indent=2)
      self._folder.publish(self._path(name + _SUFFIX), text.encode())
    except Exception:
      with contextlib.suppress(Exception):  # Otherwise the next run does it.
        self._remove(name)
      raise
    return self._parse(name, content)

  def fetch(
    self,
    manifest: CheckpointManifest,
    folder: str,
    count: Count,
  ) -> None:
    """Copies a checkpoint to a new local folder, and verifies all files."""
    for name, expected in sorted(manifest.files.items()):
      path = os.path.join(folder, *name.split('/'))
      os.makedirs(os.path.dirname(path), exist_ok=True)
      stored = self._folder.read(self._path(f'{manifest.name}/{name}'))
      try:
        with open(path, 'wb') as file:
          file.writelines(_verified(stored, expected, name, count))
      except FileNotFoundError as error:
        raise self._unreadable(manifest.name, f'{name} is missing') from error
      except checkpointing.CheckpointError as error:
        raise self._unreadable(
          manifest.name, error.problem.rstrip('.')
        ) from error

  def keep_newest(self, count: int) -> None:
    """Removes all complete checkpoints but the newest `count`."""
    for name in self.names()[:-count]:
      self._remove(name)

  def remove_unfinished(self) -> None:
    """Removes remains of interrupted writes and removals."""
    found = set(self._folder.names(self._name))
    for name in sorted(found):
      is_part = _NAME.fullmatch(name) and name + _SUFFIX not in found
      if is_part or name.endswith(storage_folder.UNFINISHED):
        self._folder.remove(self._path(name))

  def _remove(self, name: str) -> None:
    self._folder.remove(self._path(name + _SUFFIX))
    self._folder.remove(self._path(name))

  def _parse(self, name: str, content: Mapping[str, Any]) -> CheckpointManifest:
    if content['format'] != _FORMAT:
      raise ValueError(
        f'it has format {content["format"]}, this version reads {_FORMAT}'
      )
    for file in content['files']:
      parts = file.split('/')
      if any(p in ('', '.', '..') or '\\' in p or '\0' in p for p in parts):
        raise ValueError(f'the file {file!r} would be outside its folder')
    return CheckpointManifest(
      path=f'{self._shown}/{name}',
      name=name,
      learner_steps=int(content['learner_steps']),
      steps=int(content['steps']),
      episode_return=content['episode_return'],
      experiment=dict(content['experiment']),
      files=content['files'],
    )

  def _unreadable(self, name: str, why: str) -> checkpointing.CheckpointError:
    older = [one for one in self.names() if _order(one) < _order(name)]
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
    self.checkpoints, self.best = (
      CheckpointStore(self._folder, name, f'{self.shown}/{name}')
      for name in (_CHECKPOINTS, _BEST)
    )
    # Used in another thread, so with a folder of its own.
    self.lock = storage_lock.StorageLock(
      storage_folder.StorageFolder(storage), self.shown, directory
    )

  def move_aside(self) -> str:
    """Moves checkpoints into a new subfolder; returns it, or '' without any."""
    stores = {_CHECKPOINTS: self.checkpoints, _BEST: self.best}
    found = [name for name, store in stores.items() if store.names()]
    if not found:
      return ''
    aside = f'aside-{datetime.datetime.now():%Y%m%d-%H%M%S.%f}'
    for name in found:
      self._folder.move(name, f'{aside}/{name}')
    return f'{self.shown}/{aside}'

  def remove_unfinished(self) -> None:
    """Removes incomplete files of a run that was killed."""
    for name in self._folder.names(''):
      if name.endswith(storage_folder.UNFINISHED):
        self._folder.remove(name)
    self.checkpoints.remove_unfinished()
    self.best.remove_unfinished()


def _verified(
  chunks: Iterable[bytes],
  expected: Mapping[str, Any],
  name: str,
  count: Count,
) -> Iterator[bytes]:
  """Yields the chunks of a file; raises if size or checksum differ."""
  size = checksum = 0
  for chunk in chunks:
    size += len(chunk)
    checksum = zlib.crc32(chunk, checksum)
    count(len(chunk))
    yield chunk
  crc32 = f'{checksum:08x}'
  if damage := checkpointing.find_damage(name, expected, size, crc32):
    raise checkpointing.CheckpointError(f'{damage}.')


def _describe(source: str) -> tuple[dict[str, Any], Mapping[str, Any]]:
  """Returns sizes and checksums of a checkpoint's files, and its state."""
  path = os.path.join(source, checkpointing.CHECKSUMS)
  with open(path, 'rb') as file:
    content = file.read()
  files = dict(json.loads(content)['files'])
  files[checkpointing.CHECKSUMS] = {
    'size': len(content),
    'crc32': f'{zlib.crc32(content):08x}',
  }
  with open(os.path.join(source, checkpointing.STATE)) as file:
    return files, json.load(file)


def _order(name: str) -> tuple[int, str]:
  return int(name.partition('-')[0]), name
