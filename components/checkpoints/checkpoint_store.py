"""Checkpoint store with atomic checkpoints.

A checkpoint is a folder `<number>-<unique>/` with the files of a local
checkpoint, and a manifest, `<number>-<unique>.json`, that lists them. The
manifest is written last and removed first. So a checkpoint with a manifest is
complete, even on object stores, which cannot rename. A folder without one is
left over from an interrupted run.
"""

import contextlib
import dataclasses
import json
import os
import re
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from repertory.components.checkpoints import (
  backends,
  checkpointing,
  storage_lock,
)

# Version of manifests; readers reject others.
_FORMAT = 1
_SUFFIX = '.json'
_NAME = re.compile(r'([0-9]{8,})-[0-9a-f]{8}')


@dataclasses.dataclass(frozen=True)
class CheckpointManifest:
  """Description of a stored checkpoint.

  Attributes:
    path: Location, for messages.
    name: Name of the folder.
    number: Larger than the numbers of all earlier checkpoints.
    learner_steps: Updates so far.
    steps: Environment steps so far.
    episode_return: Return of its evaluation, for the best policy.
    experiment: Settings that a resumed run must match.
    files: 'size' and 'crc32' by file name.
  """

  path: str
  name: str
  number: int
  learner_steps: int
  steps: int
  episode_return: float | None
  experiment: Mapping[str, Any]
  files: Mapping[str, Mapping[str, Any]]

  @property
  def num_bytes(self) -> int:
    return sum(file['size'] for file in self.files.values())

  @property
  def progress(self) -> tuple[int, int]:
    """Progress of training, as a sort key: newer checkpoints are larger."""
    return self.learner_steps, self.steps


class CheckpointStore:
  """Checkpoints of one kind, in a folder of a storage.

  Checkpoints have unique names: two runs that write at the same time do not
  corrupt each other's files.
  """

  def __init__(self, place: backends.StorageBackend, folder: str, shown: str):
    """Initializes the store, without accessing it.

    Args:
      place: Storage backend.
      folder: Folder in the backend.
      shown: Name of the folder, for messages.
    """
    self._place = place
    self._folder = folder
    self._shown = shown
    # Checkpoints from the start or of this run; None before there are any.
    self._known: set[str] | None = None

  def names(self) -> list[str]:
    """Returns the names of complete checkpoints, the newest last."""
    found = self._place.names(self._folder)
    names = [n.removesuffix(_SUFFIX) for n in found if n.endswith(_SUFFIX)]
    return sorted(filter(_NAME.fullmatch, names), key=_order)

  def newest(self) -> CheckpointManifest | None:
    """Reads the manifest of the newest checkpoint; None without one.

    Raises:
      CheckpointError: If it is damaged. Older ones are never used instead.
    """
    names = self.names()
    return self._read_manifest(names[-1]) if names else None

  def begin(self) -> None:
    """Records existing checkpoints: later ones must be of this run."""
    self._known = set(self.names())

  def add(
    self, source: str, check: Callable[[], None], count: backends.Count
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
      LockLostError: If another run has stored a checkpoint since `begin`, or
        without `begin`, since the first `add`.
    """
    files, state = _describe(source)
    known = self._find_known()
    newest = self.newest()
    if newest is not None and newest.files == files:
      return newest
    number = int(os.path.basename(source))
    number = max(number, newest.number + 1 if newest else 0)
    name = f'{number:08d}-{uuid.uuid4().hex[:8]}'
    known.add(name)  # Before writing, because failures may leave it behind.
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
        path = os.path.join(source, *file.split('/'))
        self._store(path, f'{name}/{file}', files[file], count)
      check()
      self._find_known()
      text = json.dumps(content, indent=2)
      self._place.publish(self._path(name + _SUFFIX), text.encode())
    except Exception:
      with contextlib.suppress(Exception):  # Otherwise the next run does it.
        self._remove(name)
      raise
    return self._parse(name, content)

  def fetch(
    self, manifest: CheckpointManifest, folder: str, count: backends.Count
  ) -> None:
    """Copies a checkpoint to a local folder, and verifies all files.

    Args:
      manifest: Description of the checkpoint.
      folder: New folder for the copy.
      count: Callback with the number of bytes of each piece of a file.

    Raises:
      CheckpointError: If a file is damaged; names it.
    """
    os.makedirs(folder)
    for name, expected in sorted(manifest.files.items()):
      path = os.path.join(folder, *name.split('/'))
      os.makedirs(os.path.dirname(path), exist_ok=True)
      tally = _Tally(count)
      stored = self._place.read(self._path(f'{manifest.name}/{name}'))
      try:
        with open(path, 'wb') as file:
          for chunk in tally.over(stored):
            file.write(chunk)
      except FileNotFoundError as error:
        raise self._unreadable(manifest.name, f'{name} is missing') from error
      if problem := tally.compare(expected):
        raise self._unreadable(manifest.name, f'{name} {problem}')
    try:
      files, _ = _describe(folder)
    except (FileNotFoundError, KeyError, TypeError, ValueError):
      files = None
    if files != manifest.files:
      why = (
        'its manifest was damaged: it does not list the files of '
        f'{checkpointing.CHECKSUMS}'
      )
      raise self._unreadable(manifest.name, why)

  def keep_newest(self, count: int) -> None:
    """Removes all complete checkpoints but the newest `count`."""
    for name in self.names()[:-count]:
      self._remove(name)

  def remove_unfinished(self) -> None:
    """Removes remains of interrupted writes and removals."""
    found = set(self._place.names(self._folder))
    for name in sorted(found):
      is_part = _NAME.fullmatch(name) and name + _SUFFIX not in found
      if is_part or name.endswith(backends.UNFINISHED):
        self._place.remove(self._path(name))

  def move(self, target: 'CheckpointStore', count: backends.Count) -> None:
    """Moves all checkpoints; each is complete in one of the stores."""
    for name in self.names():
      for file in self._place.files(self._path(name)):
        path = f'{name}/{file}'
        self._place.copy(self._path(path), target._path(path), count)
      manifest = b''.join(self._place.read(self._path(name + _SUFFIX)))
      self._place.publish(target._path(name + _SUFFIX), manifest)
      self._remove(name)

  def _find_known(self) -> set[str]:
    """Returns the names of known checkpoints; raises if there are others.

    So even a run that was disconnected, and did not notice that its
    `storage_lock.StorageLock` was replaced, detects that its checkpoint is
    older.
    """
    known = self._known
    if known is None:
      known = self._known = set(self.names())
    for name in self.names():
      if name not in known:
        raise storage_lock.LockLostError(
          f'another run has stored {self._shown}/{name} meanwhile'
        )
    return known

  def _store(
    self,
    path: str,
    name: str,
    expected: Mapping[str, Any],
    count: backends.Count,
  ) -> None:
    """Writes a file, and verifies its size and checksum."""
    tally = _Tally(count)
    with open(path, 'rb') as file:
      chunks = iter(lambda: file.read(backends.CHUNK_BYTES), b'')
      self._place.write(self._path(name), tally.over(chunks))
    if problem := tally.compare(expected):
      raise checkpointing.CheckpointError(f'{path} {problem}.')
    size = self._place.size(self._path(name))
    if size != expected['size']:
      raise OSError(
        f'{self._shown}/{name} should have {expected["size"]} bytes, has {size}'
      )

  def _remove(self, name: str) -> None:
    self._place.remove(self._path(name + _SUFFIX))
    self._place.remove(self._path(name))

  def _read_manifest(self, name: str) -> CheckpointManifest:
    chunks = self._place.read(self._path(name + _SUFFIX))
    try:
      return self._parse(name, json.loads(b''.join(chunks)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
      why = f'its manifest was damaged: {type(error).__name__}: {error}'
      raise self._unreadable(name, why) from error

  def _parse(self, name: str, content: Mapping[str, Any]) -> CheckpointManifest:
    if content['format'] != _FORMAT:
      raise ValueError(
        f'it has format {content["format"]}, this version reads {_FORMAT}'
      )
    files = content['files']
    for file, description in files.items():
      _check_name(file)
      if not isinstance(description['size'], int):
        raise TypeError(f'the size of {file} is {description["size"]!r}')
      if not isinstance(description['crc32'], str):
        raise TypeError(f'the CRC-32 of {file} is {description["crc32"]!r}')
    episode_return = content['episode_return']
    if type(episode_return) not in (int, float, type(None)):
      raise TypeError(f'the episode return is {episode_return!r}')
    return CheckpointManifest(
      path=f'{self._shown}/{name}',
      name=name,
      number=_order(name)[0],
      learner_steps=int(content['learner_steps']),
      steps=int(content['steps']),
      episode_return=episode_return,
      experiment=dict(content['experiment']),
      files=files,
    )

  def _unreadable(self, name: str, why: str) -> checkpointing.CheckpointError:
    older = [one for one in self.names() if _order(one) < _order(name)]
    then = f'to resume from {older[-1]}' if older else 'to start without it'
    return checkpointing.CheckpointError(
      f'Checkpoint {self._shown}/{name} cannot be read: {why}. Remove '
      f'{self._shown}/{name}{_SUFFIX} {then}, or start afresh.',
      fresh=True,
    )

  def _path(self, name: str) -> str:
    return f'{self._folder}/{name}'


class _Tally:
  """Size and checksum of streamed chunks."""

  def __init__(self, count: backends.Count):
    self._count = count
    self._size = 0
    self._checksum = 0

  def over(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
      self._size += len(chunk)
      self._checksum = zlib.crc32(chunk, self._checksum)
      self._count(len(chunk))
      yield chunk

  def compare(self, expected: Mapping[str, Any]) -> str:
    """Returns a description of the mismatch; '' without one."""
    if self._size != expected['size']:
      return f'should have {expected["size"]} bytes, has {self._size}'
    checksum = f'{self._checksum:08x}'
    if checksum != expected['crc32']:
      return (
        f'was damaged: its checksum should be {expected["crc32"]}, is '
        f'{checksum}'
      )
    return ''


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


def _check_name(name: str) -> None:
  """Raises ValueError if a file would be outside its folder."""
  parts = name.split('/')
  if any(p in ('', '.', '..') or '\\' in p or '\0' in p for p in parts):
    raise ValueError(f'the file {name!r} would be outside its folder')


def _order(name: str) -> tuple[int, str]:
  return int(name.partition('-')[0]), name
