"""Crash-safe checkpoints: a `kill -9` at any time leaves them whole.

A checkpoint is a folder:

- `policy.npz`: variables of the policy; `policy.json`: its description. These
  two are enough to act.
- `arrays.npz`: all other arrays; `state.json`: the run's state.
- `replay/`, if replay is saved.
- `checksums.json`: sizes and checksums of all other files.

It is written under a temporary name, synced and renamed, so a folder with a
final name is complete, and its predecessor stays until then. Removal works in
the same way: the folder is renamed first.

The checksums are CRC-32, the fastest that Python has. They detect damage, not
tampering. The file that lists them covers all other files, so damage to the
list shows, too. Nothing that is read is executed: files with pickled arrays are
refused.
"""

import dataclasses
import hashlib
import json
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from repertory.components.config import regular_files
from repertory.components.config.settings import SettingError

# Versions of a checkpoint's layout; others are refused. The last one is
# written. Earlier ones have the policy's variables in `ARRAYS`.
_FORMATS = (2, 3)
_TEMPORARY_PREFIX = '.writing-'
_REMOVED_PREFIX = '.removing-'
CHECKSUMS, STATE, POLICY = 'checksums.json', 'state.json', 'policy.json'
ARRAYS, POLICY_ARRAYS = 'arrays.npz', 'policy.npz'
_REPLAY = 'replay'
_NAME = re.compile(r'[0-9]{8}|[1-9][0-9]{8,}')
_CHUNK_BYTES = 2**20  # Per read.
# Prefix of the names of arrays in `POLICY_ARRAYS`.
_OF_POLICY = 'policy/'


class CheckpointError(SettingError):
  """A checkpoint cannot be read or does not fit.

  Commands that only read cannot start afresh: they print `problem`.
  """

  def __init__(self, problem: str, **remedy: Any):
    super().__init__('', problem, **remedy)
    self.args = (problem,)  # The constructor's arguments, for pickling.

  def format(self, setting: str, *remedies: str) -> str:
    message = super().format(setting)
    if not remedies:
      return message
    remedy = f'or start afresh ({", ".join(remedies)})'
    return f'{message.removesuffix(".")}, {remedy}.'


class CheckpointWriteError(RuntimeError):
  """A checkpoint could not be written, which ends the run."""


@dataclasses.dataclass(frozen=True)
class Checkpoint:
  """Contents of a checkpoint.

  Attributes:
    path: The checkpoint's folder.
    arrays: Arrays by name.
    state: A JSON value.
    replay_path: Folder of the replay tables' contents, if they were saved.
  """

  path: str
  arrays: Mapping[str, np.ndarray]
  state: Mapping[str, Any]
  replay_path: str | None


class Checkpointer:
  """Writes and reads the checkpoints of one directory; keeps the newest."""

  def __init__(self, directory: str, max_to_keep: int = 2):
    """Keeps the newest `max_to_keep` checkpoints; nothing is written yet."""
    self._directory = directory
    self._max_to_keep = max_to_keep

  def save(
    self,
    arrays: Mapping[str, np.ndarray],
    state: Mapping[str, Any] | None = None,
    replay_path: str | None = None,
    policy: Mapping[str, Any] | None = None,
  ) -> str:
    """Writes a checkpoint, which is complete when this returns.

    If that fails, what was written is removed and the previous one stays valid.

    Args:
      arrays: Numeric arrays by name; those of the policy as 'policy/...'.
      state: A JSON value; None for a policy alone, which cannot be resumed.
      replay_path: Folder of a replay checkpoint, added as hard links: later
        changes to that folder have no effect.
      policy: Description of the policy, a JSON value; None for none.

    Returns:
      The checkpoint's folder.
    """
    return self.add(
      lambda folder: _write(folder, arrays, state, replay_path, policy)
    )

  def add(self, write: Callable[[str], None], least_number: int = 1) -> str:
    """Adds a checkpoint; see `save`.

    `write` creates the folder of the given path, and writes the files there.
    """
    os.makedirs(self._directory, exist_ok=True)
    self.remove_unfinished()
    # Also of files that others put there.
    taken = [int(n) for n in os.listdir(self._directory) if _NAME.fullmatch(n)]
    name = f'{max([least_number, *(number + 1 for number in taken)]):08d}'
    temporary = os.path.join(self._directory, _TEMPORARY_PREFIX + name)
    path = os.path.join(self._directory, name)
    try:
      write(temporary)
      sync_tree(temporary)
      os.rename(temporary, path)
    except Exception:
      shutil.rmtree(temporary, ignore_errors=True)
      raise
    sync_folder(self._directory)
    for number in _numbers(self._directory)[: -self._max_to_keep]:
      old = f'{number:08d}'
      removed = os.path.join(self._directory, _REMOVED_PREFIX + old)
      os.rename(os.path.join(self._directory, old), removed)
      shutil.rmtree(removed)
    return path

  def load(self, check_replay: bool = True) -> Checkpoint | None:
    """Reads the newest checkpoint; returns None without one.

    Args:
      check_replay: Whether to verify the checksums of replay files, too;
        without, only their presence and sizes are checked.

    Raises:
      CheckpointError: If it is damaged or cannot be read. The message names the
        damage. Older checkpoints are never used instead.
    """
    return self._load(lambda path: _read(path, check_replay))

  def load_policy(self) -> Checkpoint | None:
    """Reads only the newest checkpoint's policy; returns None without one.

    `state` is the description of the policy. Checkpoints of earlier versions
    lack it; then `state` is the whole state of the run.

    Raises:
      CheckpointError: If these files are damaged or cannot be read.
    """
    return self._load(_read_policy)

  def _load(self, read: Callable[[str], Checkpoint]) -> Checkpoint | None:
    while numbers := _numbers(self._directory):
      path = os.path.join(self._directory, f'{numbers[-1]:08d}')
      try:
        return read(path)
      except Exception as error:  # Damaged bytes may raise anything.
        if _numbers(self._directory)[-1:] > numbers[-1:]:
          continue  # It was replaced by a newer one meanwhile.
        if isinstance(error, CheckpointError):
          raise
        raise _unreadable(path, f'{type(error).__name__}: {error}') from error
    return None

  def newest(self) -> str | None:
    """Returns the newest checkpoint's folder, or None."""
    for number in _numbers(self._directory)[-1:]:
      return os.path.join(self._directory, f'{number:08d}')
    return None

  def remove_unfinished(self) -> None:
    """Removes leftovers of interrupted writes and removals."""
    if not os.path.isdir(self._directory):
      return
    for name in os.listdir(self._directory):
      if name.startswith((_TEMPORARY_PREFIX, _REMOVED_PREFIX)):
        _remove_entry(os.path.join(self._directory, name))


def prepare_replay(replay_path: str | None, directory: str) -> None:
  """Prepares a directory with the replay tables of a checkpoint, or none.

  Its old contents are removed. A replay server that starts there restores it.
  """
  if os.path.lexists(directory):
    _remove_entry(directory)
  os.makedirs(directory)
  if replay_path is not None:
    # Reverb loads the checkpoint whose name sorts last, and names new ones by
    # date.
    link_tree(replay_path, os.path.join(directory, '0-restored'))


def hash_arrays(arrays: Mapping[str, np.ndarray]) -> str:
  """Returns the SHA-256 of names, dtypes, shapes and bits, in hexadecimal."""
  digest = hashlib.sha256()
  for name, array in sorted(arrays.items()):
    array = np.ascontiguousarray(array)
    digest.update(f'{name} {array.dtype.str} {np.shape(array)};'.encode())
    digest.update(array.tobytes())
  return digest.hexdigest()


def write_arrays(
  path: str, arrays: Iterable[tuple[str, np.ndarray]], method: int = 0
) -> None:
  """Writes arrays by name to a file that `np.load` reads without pickles.

  Unlike `np.savez`, it closes its archive even if the disk is full.

  Args:
    arrays: Names and numeric arrays; iterated once.
    method: The compression, a constant of `zipfile`; 0 for none.
  """
  with open(path, 'wb') as file, zipfile.ZipFile(file, 'w', method) as archive:
    for name, array in arrays:
      with archive.open(f'{name}.npy', 'w', force_zip64=True) as entry:
        np.lib.format.write_array(entry, array, allow_pickle=False)


def read_arrays(file: BinaryIO) -> dict[str, np.ndarray]:
  """Reads the arrays of `write_arrays`; refuses pickles."""
  # Given a path, NumPy does not close files that it cannot read.
  with np.load(file, allow_pickle=False) as arrays:
    return {name: arrays[name] for name in arrays.files}


def _write(
  folder: str,
  arrays: Mapping[str, np.ndarray],
  state: Mapping[str, Any] | None,
  replay_path: str | None,
  policy: Mapping[str, Any] | None,
) -> None:
  """Writes all files of a checkpoint."""
  os.makedirs(folder)
  by_file: dict[str, dict[str, np.ndarray]]
  by_file = {} if state is None else {ARRAYS: {}}
  for name, array in arrays.items():
    file = POLICY_ARRAYS if name.startswith(_OF_POLICY) else ARRAYS
    by_file.setdefault(file, {})[name] = array
  for file, chosen in by_file.items():
    write_arrays(os.path.join(folder, file), chosen.items())
  if state is not None:
    _write_json(folder, STATE, state)
  if policy is not None:
    _write_json(folder, POLICY, policy)
  if replay_path is not None:
    link_tree(replay_path, os.path.join(folder, _REPLAY))
  files = {name: describe_file(folder, name) for name in _list(folder)}
  _write_json(folder, CHECKSUMS, {'format': _FORMATS[-1], 'files': files})


def _write_json(folder: str, name: str, content: Mapping[str, Any]) -> None:
  with open(os.path.join(folder, name), 'w') as file:
    json.dump(content, file, indent=2)


def _read(path: str, check_replay: bool) -> Checkpoint:
  """Reads a checkpoint; damage may raise any error."""
  files = read_checksums(path)
  if POLICY in files and STATE not in files:
    raise CheckpointError(
      f'Checkpoint {path} must have the state of a run, got only a policy. '
      'Choose another directory.'
    )
  found = set(_list(path)) - {CHECKSUMS}
  if found != set(files):
    missing, unknown = set(files) - found, found - set(files)
    raise _unreadable(
      path,
      f'{CHECKSUMS} does not match the files; missing: '
      f'{sorted(missing)}, not listed: {sorted(unknown)}',
    )
  if damage := find_damage(path, files, check_replay):
    raise _unreadable(path, damage)
  arrays = [one for one in (POLICY_ARRAYS, ARRAYS) if one in files]
  replay_path = os.path.join(path, _REPLAY)
  has_replay = os.path.isdir(replay_path)
  return _open(path, arrays, STATE, replay_path if has_replay else None)


def _read_policy(path: str) -> Checkpoint:
  """Reads the policy of a checkpoint; damage may raise any error."""
  files = read_checksums(path)
  arrays = POLICY_ARRAYS if POLICY_ARRAYS in files else ARRAYS
  state = POLICY if POLICY in files else STATE
  if damage := find_damage(path, {n: files[n] for n in (arrays, state)}):
    raise _unreadable(path, damage)
  return _open(path, [arrays], state, None)


def _open(
  path: str, array_files: Sequence[str], state: str, replay_path: str | None
) -> Checkpoint:
  arrays: dict[str, np.ndarray] = {}
  for name in array_files:
    with regular_files.open_inside(path, name) as file:
      arrays.update(read_arrays(file))
  with regular_files.open_inside(path, state) as file:
    return Checkpoint(path, arrays, json.load(file), replay_path)


def read_checksums(path: str) -> Mapping[str, Mapping[str, Any]]:
  """Returns size and checksum of each file of a checkpoint."""
  if not os.path.exists(os.path.join(path, CHECKSUMS)):
    raise _unreadable(path, f'it is damaged: it has no {CHECKSUMS}')
  with regular_files.open_inside(path, CHECKSUMS) as file:
    content = json.load(file)
  if content['format'] not in _FORMATS:
    raise CheckpointError(
      f'Checkpoint {path} has format {content["format"]}, this version reads '
      f'formats {" and ".join(map(str, _FORMATS))}. Resume with the version '
      'that wrote it.',
      fresh=True,
    )
  return content['files']


def describe_file(folder: str, name: str) -> dict[str, Any]:
  """Returns the 'size' and 'crc32' of a file in a folder."""
  checksum = 0
  with regular_files.open_inside(folder, name) as opened:
    while chunk := opened.read(_CHUNK_BYTES):
      checksum = zlib.crc32(chunk, checksum)
    return {'size': opened.tell(), 'crc32': f'{checksum:08x}'}


def find_damage(
  folder: str,
  files: Mapping[str, Mapping[str, Any]],
  with_replay: bool = True,
) -> str:
  """Returns how the first damaged file differs from its description, or ''.

  Without `with_replay`, only the sizes of replay files are checked.
  """
  for name, expected in sorted(files.items()):
    size = os.path.getsize(os.path.join(folder, name))
    if size != expected['size']:
      return f'{name} should have {expected["size"]} bytes, has {size}'
    if not with_replay and name.startswith(_REPLAY + os.sep):
      continue
    checksum = describe_file(folder, name)['crc32']
    if checksum != expected['crc32']:
      return (
        f'{name} was damaged: its checksum should be {expected["crc32"]}, is '
        f'{checksum}'
      )
  return ''


def _unreadable(path: str, why: str) -> CheckpointError:
  """Returns the error for a checkpoint's folder, with a remedy."""
  directory, name = os.path.split(path)
  older = [number for number in _numbers(directory) if number < int(name)]
  advice = 'Restore it from a copy'
  if older:
    advice += f', or move it away to resume from checkpoint {older[-1]:08d}'
  return CheckpointError(
    f'Checkpoint {path} cannot be read: {why}. {advice}.', fresh=True
  )


def _numbers(directory: str) -> list[int]:
  """Returns the numbers of a directory's checkpoints, in order."""
  if not os.path.isdir(directory):
    return []
  return sorted(
    int(name)
    for name in os.listdir(directory)
    if _NAME.fullmatch(name)
    and not os.path.isfile(os.path.join(directory, name))
  )


def _remove_entry(path: str) -> None:
  """Removes a folder, or a file or link in its place."""
  if os.path.isdir(path) and not os.path.islink(path):
    shutil.rmtree(path)
  else:
    os.remove(path)


def _list(folder: str) -> list[str]:
  """Returns the paths of the files under a folder, relative to it."""
  return sorted(
    os.path.relpath(os.path.join(root, name), folder)
    for root, _, names in os.walk(folder)
    for name in names
  )


def link_tree(source: str, destination: str) -> None:
  """Copies a folder, using hard links where possible."""
  try:
    shutil.copytree(source, destination, copy_function=os.link)
  except (OSError, shutil.Error):  # Another file system, or no hard links.
    shutil.rmtree(destination, ignore_errors=True)
    shutil.copytree(source, destination)


def sync_tree(path: str) -> None:
  """Waits until the disk has a file, or a folder with its contents."""
  sync_folder(path)
  for root, folders, names in os.walk(path):
    for name in folders + names:
      sync_folder(os.path.join(root, name))


def sync_folder(path: str) -> None:
  """Waits until the disk has a file, or the entries of a folder."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
