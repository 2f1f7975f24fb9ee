"""Storage of a run: its checkpoints and its best policy."""

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator

from repertory.components.checkpoints import (
  backends,
  checkpoint_store,
  fsspec_backend,
  storage_lock,
)
from repertory.components.config.settings import SettingError

_CHECKPOINTS, _BEST = 'checkpoints', 'best'


def open_storage(storage: str | None, directory: str) -> 'Storage | None':
  """Opens a storage without accessing its contents.

  Args:
    storage: A path, or a URL that fsspec supports; None for no storage.
    directory: Directory of the run.

  Raises:
    SettingError: If the storage is invalid.
  """
  if storage is None:
    return None
  place = _open(storage)
  if place.local_path is not None:
    _check_apart(storage, place.local_path, directory)
  return Storage(storage, directory)


class Storage:
  """Storage for the checkpoints of a run, besides its directory.

  Attributes:
    shown: Name of the storage, for messages.
    checkpoints: Checkpoints to resume training from.
    best: Policy of the best evaluation.
  """

  def __init__(self, storage: str, directory: str):
    """Initializes the storage, without access; see `open_storage`."""
    self.shown = fsspec_backend.without_secrets(storage).rstrip('/') or '/'
    self._place = _open(storage)
    self.checkpoints, self.best = self._shelves('')
    # Used in another thread, so with a backend of its own.
    self._owner = storage_lock.StorageLock(
      _open(storage), self.shown, directory
    )

  @contextlib.contextmanager
  def hold(self, report: Callable[[str], None]) -> Iterator[None]:
    """Owns the storage in the block; see `storage_lock.StorageLock.hold`."""
    with self._owner.hold(report):
      for one in (self.checkpoints, self.best):
        one.begin()
      yield

  def check(self) -> None:
    """Raises LockLostError if another run has taken over the storage."""
    self._owner.check()

  def move_aside(self, count: backends.Count) -> str:
    """Moves all checkpoints into a new subfolder; nothing is lost.

    Args:
      count: Callback with the number of bytes of each piece of a file.

    Returns:
      The subfolder, which is a valid storage; '' if there were no checkpoints.
    """
    if not self.checkpoints.names() and not self.best.names():
      return ''
    aside = f'aside-{datetime.datetime.now():%Y%m%d-%H%M%S.%f}'
    for mine, other in zip(
      (self.checkpoints, self.best), self._shelves(aside), strict=True
    ):
      mine.move(other, count)
    return f'{self.shown}/{aside}'

  def remove_unfinished(self) -> None:
    """Removes incomplete files of a run that was killed."""
    for name in self._place.names(''):
      if name.endswith(backends.UNFINISHED):
        self._place.remove(name)
    self.checkpoints.remove_unfinished()
    self.best.remove_unfinished()

  def _shelves(
    self, folder: str
  ) -> tuple[
    checkpoint_store.CheckpointStore, checkpoint_store.CheckpointStore
  ]:
    def make(name: str) -> checkpoint_store.CheckpointStore:
      path = f'{folder}/{name}' if folder else name
      return checkpoint_store.CheckpointStore(
        self._place, path, f'{self.shown}/{path}'
      )

    return make(_CHECKPOINTS), make(_BEST)


def _open(storage: str) -> backends.StorageBackend:
  if fsspec_backend.is_url(storage):
    return fsspec_backend.FsspecBackend(storage)
  return backends.LocalBackend(storage)


def _check_apart(storage: str, path: str, directory: str) -> None:
  """Raises an error if the storage and the run's directory overlap."""
  outer, inner = os.path.realpath(directory), os.path.realpath(path)
  if os.path.commonpath([outer, inner]) == outer:
    raise SettingError(
      'storage',
      f"must be apart from the run's directory {directory}, got {storage}, "
      'which is that directory or inside it.',
    )
  for folder in (_CHECKPOINTS, _BEST):
    own = os.path.join(inner, folder)
    if os.path.commonpath([outer, own]) == own:
      raise SettingError(
        'storage',
        f"must be apart from the run's directory {directory}, got {storage}, "
        f'which has checkpoints of its own in {own}.',
      )
