"""Checkpoints that a `kill -9` at any moment leaves whole.

A checkpoint is a folder: `arrays.npz`, `state.json` and, where replay is kept,
`replay/`. It is written under a temporary name, synced and renamed; so what
has its final name is complete, and the one before is there until then.
"""

import dataclasses
import json
import os
import shutil
from collections.abc import Mapping
from typing import Any

import numpy as np

# Of the layout of a checkpoint. A reader refuses others.
_FORMAT = 1
_TEMPORARY_PREFIX = '.writing-'


class CheckpointError(ValueError):
  """A checkpoint cannot be read or does not fit."""


@dataclasses.dataclass(frozen=True)
class Checkpoint:
  """What was saved.

  Attributes:
    path: The checkpoint's folder.
    arrays: Arrays by name.
    state: Whatever JSON can express.
    replay_path: Folder of the replay tables' contents, if they were saved.
  """

  path: str
  arrays: Mapping[str, np.ndarray]
  state: Mapping[str, Any]
  replay_path: str | None


class Checkpointer:
  """Keeps the newest checkpoints of one directory."""

  def __init__(self, directory: str, max_to_keep: int = 2):
    """Remembers the directory; nothing is written yet.

    Args:
      directory: Holds the checkpoints and nothing else.
      max_to_keep: Older ones are removed after a new one is complete.
    """
    if max_to_keep < 1:
      raise ValueError(f'max_to_keep must be at least 1, got {max_to_keep}.')
    self._directory = directory
    self._max_to_keep = max_to_keep

  def save(
    self,
    arrays: Mapping[str, np.ndarray],
    state: Mapping[str, Any],
    replay_path: str | None = None,
  ) -> str:
    """Writes a checkpoint; it counts as soon as this returns.

    Args:
      arrays: Arrays by name.
      state: Whatever JSON can express.
      replay_path: Folder of a replay checkpoint, taken in as hard links: what
        happens to that folder later does not matter.

    Returns:
      The checkpoint's folder.
    """
    os.makedirs(self._directory, exist_ok=True)
    self._remove_unfinished()
    numbers = self._numbers()
    name = f'{(numbers[-1] + 1 if numbers else 1):08d}'
    temporary = os.path.join(self._directory, _TEMPORARY_PREFIX + name)
    os.makedirs(temporary)
    with open(os.path.join(temporary, 'arrays.npz'), 'wb') as file:
      np.savez(file, **arrays)
      _sync(file)
    if replay_path is not None:
      _link_tree(replay_path, os.path.join(temporary, 'replay'))
    content = {
      'format': _FORMAT,
      'files': _file_sizes(temporary),
      'state': state,
    }
    with open(os.path.join(temporary, 'state.json'), 'w') as file:
      json.dump(content, file, indent=2)
      _sync(file)
    _sync_tree(temporary)
    path = os.path.join(self._directory, name)
    os.rename(temporary, path)
    _sync_folder(self._directory)
    for number in numbers[: max(0, len(numbers) + 1 - self._max_to_keep)]:
      shutil.rmtree(os.path.join(self._directory, f'{number:08d}'))
    return path

  def load(self) -> Checkpoint | None:
    """Reads the newest checkpoint; None if there is none.

    Raises:
      CheckpointError: If it cannot be read, saying what is wrong with it.
    """
    numbers = self._numbers()
    if not numbers:
      return None
    path = os.path.join(self._directory, f'{numbers[-1]:08d}')
    try:
      with open(os.path.join(path, 'state.json')) as file:
        content = json.load(file)
      if content['format'] != _FORMAT:
        raise CheckpointError(
          f'Checkpoint {path} has format {content["format"]}, this version '
          f'reads format {_FORMAT}. Go on with the version that wrote it, or '
          'start afresh.'
        )
      _check_files(path, content['files'])
      # NumPy by itself leaves open what it cannot read.
      with (
        open(os.path.join(path, 'arrays.npz'), 'rb') as file,
        np.load(file) as arrays,
      ):
        arrays = {name: arrays[name] for name in arrays.files}
      state = content['state']
    except CheckpointError:
      raise
    except Exception as error:  # Broken bytes may raise anything.
      why = f'{type(error).__name__}: {error}'
      raise CheckpointError(_unreadable(path, why)) from error
    replay_path = os.path.join(path, 'replay')
    return Checkpoint(
      path=path,
      arrays=arrays,
      state=state,
      replay_path=replay_path if os.path.isdir(replay_path) else None,
    )

  def _numbers(self) -> list[int]:
    if not os.path.isdir(self._directory):
      return []
    names = os.listdir(self._directory)
    return sorted(int(name) for name in names if name.isdigit())

  def _remove_unfinished(self) -> None:
    for name in os.listdir(self._directory):
      if name.startswith(_TEMPORARY_PREFIX):
        shutil.rmtree(os.path.join(self._directory, name))


def place_replay(replay_path: str | None, directory: str) -> None:
  """Makes a directory hold just one replay checkpoint, or none.

  A replay server that starts there takes up what it finds.

  Args:
    replay_path: Of a checkpoint; None to start empty.
    directory: What the server will read; its old contents are removed.
  """
  shutil.rmtree(directory, ignore_errors=True)
  os.makedirs(directory)
  if replay_path is not None:
    # Reverb keeps the checkpoint whose name sorts last, and names new ones by
    # the date.
    _link_tree(replay_path, os.path.join(directory, '0-restored'))


def _check_files(path: str, sizes: Mapping[str, int]) -> None:
  for name, size in sizes.items():
    file = os.path.join(path, name)
    found = os.path.getsize(file) if os.path.isfile(file) else None
    if found != size:
      raise CheckpointError(
        _unreadable(
          path,
          f'{name} should have {size} bytes, '
          + ('is missing' if found is None else f'has {found}'),
        )
      )


def _unreadable(path: str, why: str) -> str:
  return (
    f'Checkpoint {path} cannot be read: {why}. Remove that folder to go on '
    'from the checkpoint before it, or start afresh.'
  )


def _file_sizes(folder: str) -> dict[str, int]:
  return {
    os.path.relpath(os.path.join(root, name), folder): os.path.getsize(
      os.path.join(root, name)
    )
    for root, _, names in os.walk(folder)
    for name in names
  }


def _link_tree(source: str, destination: str) -> None:
  try:
    shutil.copytree(source, destination, copy_function=os.link)
  except (OSError, shutil.Error):  # Another file system, or one without links.
    shutil.rmtree(destination, ignore_errors=True)
    shutil.copytree(source, destination)


def _sync(file) -> None:
  file.flush()
  os.fsync(file.fileno())


def _sync_tree(folder: str) -> None:
  for root, _, names in os.walk(folder):
    for name in names:
      with open(os.path.join(root, name), 'rb') as file:
        os.fsync(file.fileno())
    _sync_folder(root)


def _sync_folder(path: str) -> None:
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
