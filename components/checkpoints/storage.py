"""Storage of a run: a folder, stores of atomic checkpoints, and a lock.

A checkpoint is a folder `<number>-<unique>/` with the files of a local
checkpoint, and a manifest, `<number>-<unique>.json`, that lists them. The
manifest is written last and removed first. So a checkpoint with a manifest is
complete, even on object stores, which cannot rename. A folder without one is
left over from an interrupted run.

The lock is a small file that names the run, and changes every few seconds while
it runs. It lets two runs notice each other, and the correctness of their files
does not depend on it.
"""

import contextlib
import dataclasses
import datetime
import json
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError

# Suffix of incomplete files, which readers ignore.
UNFINISHED = '.unfinished'

_URL = re.compile(r'::|://')

# Version of manifests; readers reject others.
_FORMAT = 1
_SUFFIX = '.json'
_NAME = re.compile(r'[0-9]{8,}-[0-9a-f]{8}')

_OWNER = 'owner.json'

# Interval of heartbeats, which change the file.
_HEARTBEAT_SECONDS = 10.0
# Time without a change after which the owner counts as dead.
_WATCH_SECONDS = 25.0
_LOOK_SECONDS = 1.0
# Timeout for the removal of the file at the end of a run.
_CLOSE_SECONDS = 5.0


def _without_secrets(storage: str) -> str:
  """Returns a path or URL without its password, for messages."""
  return re.sub(r'://[^/@]*@', '://***@', storage)


class StorageFolder:
  """A folder at a path, or behind a URL that fsspec supports.

  Names are paths relative to the folder, with '/'; '' is the folder itself.
  Errors are those of fsspec and of the package behind the URL, which may have
  any type; missing files are FileNotFoundErrors.

  Attributes:
    local_path: Path of the folder, if it is on a disk of this machine.
  """

  def __init__(self, storage: str):
    """Opens a path or URL without accessing its contents.

    Raises:
      SettingError: If a package is missing, or fsspec does not support the URL.
    """
    # Here, because few runs have a storage.
    import fsspec.core  # noqa: PLC0415
    from fsspec.implementations import local  # noqa: PLC0415

    url = storage if _URL.search(storage) else os.path.abspath(storage)
    try:
      # A separate instance, because not all can be shared by threads.
      system, path = fsspec.core.url_to_fs(url, skip_instance_cache=True)
    except Exception as error:  # The package behind it may raise any type.
      raise SettingError(
        'storage',
        'must be a path or a URL that fsspec can open, got '
        f'{_without_secrets(storage)}: {type(error).__name__}: {error}.',
      ) from error
    self._system: Any = system
    self._root = path.rstrip('/')
    is_local = isinstance(system, local.LocalFileSystem)
    self.local_path = path if is_local else None

  def names(self, folder: str) -> list[str]:
    """Returns the sorted entries of a folder; empty if it does not exist."""
    path = self._path(folder)
    try:
      found = self._system.ls(path, detail=False)
    except FileNotFoundError:
      return []
    # Some object stores list the folder itself.
    names = {one.rstrip('/') for one in found} - {path}
    return sorted(name.rpartition('/')[2] for name in names)

  def read(self, name: str) -> bytes:
    """Returns the contents of a small file."""
    return self._system.cat_file(self._path(name))

  def download(self, name: str, path: str) -> None:
    """Copies a file to a local path."""
    self._system.get_file(self._path(name), path)

  def upload(self, path: str, name: str) -> None:
    """Copies a local file, and creates its parents."""
    target = self._path(name)
    self._system.makedirs(os.path.dirname(target), exist_ok=True)
    self._system.put_file(path, target)
    size, found = os.path.getsize(path), self._system.size(self._path(name))
    if found != size:
      raise OSError(f'{target} should have {size} bytes, has {found}')

  def publish(self, name: str, content: bytes) -> None:
    """Writes a small file atomically: others see all of it or nothing."""
    temporary = f'{name}.{uuid.uuid4().hex}{UNFINISHED}'
    path, target = self._path(temporary), self._path(name)
    self._system.makedirs(os.path.dirname(target), exist_ok=True)
    try:
      self._system.pipe_file(path, content)
      self.sync(temporary)
      # A disk renames; copies of object stores are visible when complete.
      self._system.mv(path, target)
    except Exception:
      with contextlib.suppress(Exception):  # Otherwise the next run does it.
        self.remove(temporary)
      raise
    self.sync(name)

  def move(self, folder: str, target: str) -> None:
    """Moves a folder; object stores copy all files, then remove the old."""
    path = self._path(target)
    self._system.makedirs(os.path.dirname(path), exist_ok=True)
    self._system.mv(self._path(folder), path, recursive=True)

  def remove(self, name: str) -> None:
    """Removes a file, or a folder with its contents, if it exists."""
    with contextlib.suppress(FileNotFoundError):
      self._system.rm(self._path(name), recursive=True)

  def _path(self, name: str) -> str:
    """Returns the path of an entry, after which accesses are up to date."""
    self._system.invalidate_cache()  # Others write there, too.
    return f'{self._root}/{name}' if name else self._root

  def sync(self, name: str) -> None:
    """Waits until a local disk has a file or folder, and its parents."""
    if self.local_path is not None:
      path = self._path(name)
      checkpointing.sync_tree(path)
      while len(path) > len(self._root) + 1:
        path = os.path.dirname(path)
        checkpointing.sync_folder(path)


class LockLostError(RuntimeError):
  """Another run has taken over the storage."""


class StorageLock:
  """Claims a storage for this run, and detects other runs."""

  def __init__(self, folder: StorageFolder, shown: str, directory: str):
    """Initializes the lock, without writing; `folder` is used by one thread."""
    self._folder = folder
    self._shown = shown
    self._content: dict[str, Any] = {
      'token': uuid.uuid4().hex,
      'host': socket.gethostname(),
      'process': os.getpid(),
      'directory': os.path.abspath(directory),
      'beats': 0,
    }
    self._problem = ''
    self._access = threading.RLock()
    self._ended = threading.Event()

  @contextlib.contextmanager
  def owning(self, report: Callable[[str], None]) -> Iterator[None]:
    """Owns the storage during the block; `report` logs long waits.

    Raises a SettingError if another run owns it.
    """
    if other := self._read():
      report(
        f'{self._shown} was not released by {_describe(other)}; waiting up to '
        f'{_WATCH_SECONDS:g} s to see whether that run is alive'
      )
      self._watch(other)
    self._send_heartbeat()
    try:
      self.check()
    except LockLostError as error:  # Two runs started at the same time.
      raise SettingError(
        'storage', f'must not be in use, but {error}.'
      ) from error
    thread = threading.Thread(
      target=self._send_heartbeats, name='storage-owner', daemon=True
    )
    thread.start()
    try:
      yield
    finally:
      self._ended.set()
      thread.join(_CLOSE_SECONDS)

  def check(self) -> None:
    """Raises LockLostError if another run has taken over, which is final."""
    with self._access:
      if not self._problem:
        content = self._read()
        if content is None:
          self._problem = (
            f'{self._shown}/{_OWNER}, which named this run, is gone, as it is '
            f'after another run has used {self._shown}'
          )
        elif content.get('token') != self._content['token']:
          self._problem = f'{_describe(content)} has taken over {self._shown}'
    if self._problem:
      raise LockLostError(self._problem)

  def _watch(self, other: dict[str, Any]) -> None:
    """Waits until another run's file is gone, or has not changed for long."""
    deadline = time.monotonic() + _WATCH_SECONDS
    while time.monotonic() < deadline and (content := self._read()):
      if content != other:
        raise SettingError(
          'storage',
          f'must not be in use, but {_describe(content)} stores to '
          f'{self._shown}. Give each run a storage of its own, or stop that '
          'run.',
        )
      time.sleep(min(_LOOK_SECONDS, _WATCH_SECONDS / 4))

  def _send_heartbeats(self) -> None:
    """Sends heartbeats until the end, then removes the file."""
    is_last = False
    while not is_last:
      is_last = self._ended.wait(_HEARTBEAT_SECONDS)
      # The disk or network may be back next time.
      with self._access, contextlib.suppress(Exception):
        self.check()
        if is_last:
          self._folder.remove(_OWNER)
        else:
          self._send_heartbeat()

  def _send_heartbeat(self) -> None:
    self._content['beats'] += 1
    self._folder.publish(_OWNER, json.dumps(self._content).encode())

  def _read(self) -> dict[str, Any] | None:
    """Returns the contents of the file; None if it does not exist."""
    try:
      text = self._folder.read(_OWNER)
    except FileNotFoundError:
      return None
    try:
      return json.loads(text)
    except ValueError:
      return {'content': repr(text)}


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

  def __init__(self, folder: StorageFolder, name: str, shown: str):
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
      except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f'its manifest was damaged: {type(error).__name__}: {error}'
        raise self._unreadable(name, why) from error
    return None

  def add(self, source: str, check: Callable[[], None]) -> CheckpointManifest:
    """Stores a local checkpoint, which is complete when this returns.

    If the newest one is equal, nothing is done. On errors the files are removed
    if possible. `check` is called before each file, of which the manifest is
    the last, and raises an error if the checkpoint must not be stored.
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
      if is_part or name.endswith(UNFINISHED):
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
    self.shown = _without_secrets(storage).rstrip('/') or '/'
    self._folder = StorageFolder(storage)
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
    self.lock = StorageLock(StorageFolder(storage), self.shown, directory)

  def move_aside(self) -> str:
    """Moves checkpoints into a new subfolder; returns it, or '' without any."""
    aside = f'aside-{datetime.datetime.now():%Y%m%d-%H%M%S.%f}'
    moved = [one.move_into(aside) for one in (self.checkpoints, self.best)]
    return f'{self.shown}/{aside}' if any(moved) else ''

  def remove_unfinished(self) -> None:
    """Removes incomplete files of a run that was killed."""
    for name in self._folder.names(''):
      if name.endswith(UNFINISHED):
        self._folder.remove(name)
    self.checkpoints.remove_unfinished()
    self.best.remove_unfinished()


def _number(name: str) -> int:
  return int(name.partition('-')[0])


def _describe(content: dict[str, Any]) -> str:
  return 'the run of process {} on host {}, in {}'.format(
    *(content.get(name, '?') for name in ('process', 'host', 'directory'))
  )
