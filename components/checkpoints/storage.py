"""Storage of a run: its checkpoints and its best policy."""

import datetime
import os

from repertory.components.checkpoints import (
  checkpoint_store,
  storage_folder,
  storage_lock,
)
from repertory.components.config.settings import SettingError

_CHECKPOINTS, _BEST = 'checkpoints', 'best'


def open_storage(storage: str | None, directory: str) -> 'Storage | None':
  """Opens a storage, without access; raises SettingError if invalid."""
  if storage is None:
    return None
  path = storage_folder.StorageFolder(storage).local_path
  if path is not None:
    _check_apart(storage, path, directory)
  return Storage(storage, directory)


class Storage:
  """Storage for the checkpoints of a run, besides its directory.

  Attributes:
    shown: Name of the storage, for messages.
    checkpoints: Checkpoints to resume training from.
    best: Policy of the best evaluation.
    lock: Ownership of the storage.
  """

  def __init__(self, storage: str, directory: str):
    """Initializes the storage, without access; see `open_storage`."""
    self.shown = storage_folder.without_secrets(storage).rstrip('/') or '/'
    self._folder = storage_folder.StorageFolder(storage)
    self.checkpoints = self._make_store(_CHECKPOINTS)
    self.best = self._make_store(_BEST)
    # Used in another thread, so with a folder of its own.
    self.lock = storage_lock.StorageLock(
      storage_folder.StorageFolder(storage), self.shown, directory
    )

  def move_aside(self) -> str:
    """Moves checkpoints into a new subfolder; returns it, or '' without any."""
    found = [
      name for name in (_CHECKPOINTS, _BEST) if self._make_store(name).names()
    ]
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

  def _make_store(self, name: str) -> checkpoint_store.CheckpointStore:
    return checkpoint_store.CheckpointStore(
      self._folder, name, f'{self.shown}/{name}'
    )


def _check_apart(storage: str, path: str, directory: str) -> None:
  """Raises an error if the storage and the run's directory overlap."""
  outer, inner = os.path.realpath(directory), os.path.realpath(path)
  if os.path.commonpath([outer, inner]) == outer:
    raise SettingError(
      'storage',
      f"must be apart from the run's directory {directory}, got {storage}, "
      'which is that directory or inside it.',
    )
