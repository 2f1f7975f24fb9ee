"""All that a run has in a storage."""

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator

from repertory.components.settings import SettingError
from repertory.components.storage import fsspec_place, owner, places, shelf

_CHECKPOINTS, _BEST = 'checkpoints', 'best'


def open_storage(storage: str | None, directory: str) -> 'Storage | None':
  """Opens a storage without looking what is there.

  Args:
    storage: A path, or a URL that fsspec knows; None for none.
    directory: The run's.

  Raises:
    SettingError: If it cannot be one.
  """
  if storage is None:
    return None
  place = _open(storage)
  if place.local_path is not None:
    _check_apart(storage, place.local_path, directory)
  return Storage(storage, directory)


class Storage:
  """Where a run keeps checkpoints besides its directory.

  Attributes:
    shown: Its name, for messages.
    checkpoints: From which training can go on.
    best: The policy of the best evaluation.
  """

  def __init__(self, storage: str, directory: str):
    """Looks at nothing yet; see `open_storage`."""
    self.shown = fsspec_place.without_secrets(storage).rstrip('/') or '/'
    self._place = _open(storage)
    self.checkpoints, self.best = self._shelves('')
    # In a thread of its own, so with a place of its own.
    self._owner = owner.Owner(_open(storage), self.shown, directory)

  @contextlib.contextmanager
  def hold(self, tell: Callable[[str], None]) -> Iterator[None]:
    """Uses the storage during the block; see `owner.Owner.hold`."""
    with self._owner.hold(tell):
      for one in (self.checkpoints, self.best):
        one.begin()
      yield

  def check(self) -> None:
    """Raises OwnerLostError if another run has taken the storage."""
    self._owner.check()

  def move_aside(self, count: places.Count) -> str:
    """Moves what is there into a folder beside it; nothing is lost.

    Args:
      count: Called with the number of bytes after each piece of a file.

    Returns:
      That folder, which can be used as a storage; '' if there was nothing.
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
    """Removes what a run that was killed did not finish."""
    for name in self._place.names(''):
      if name.endswith(places.UNFINISHED):
        self._place.remove(name)
    self.checkpoints.remove_unfinished()
    self.best.remove_unfinished()

  def _shelves(self, folder: str) -> tuple[shelf.Shelf, shelf.Shelf]:
    def make(name: str) -> shelf.Shelf:
      path = f'{folder}/{name}' if folder else name
      return shelf.Shelf(self._place, path, f'{self.shown}/{path}')

    return make(_CHECKPOINTS), make(_BEST)


def _open(storage: str) -> places.Place:
  if fsspec_place.is_url(storage):
    return fsspec_place.FsspecPlace(storage)
  return places.LocalPlace(storage)


def _check_apart(storage: str, path: str, directory: str) -> None:
  """Refuses a storage that is part of the run's directory, or the reverse."""
  outer, inner = os.path.realpath(directory), os.path.realpath(path)
  if os.path.commonpath([outer, inner]) == outer:
    raise SettingError(
      'storage',
      f"must be apart from the run's directory {directory}, got {storage}, "
      'which is that or in it.',
    )
  for folder in (_CHECKPOINTS, _BEST):
    own = os.path.join(inner, folder)
    if os.path.commonpath([outer, own]) == own:
      raise SettingError(
        'storage',
        f"must be apart from the run's directory {directory}, got {storage}, "
        f'which keeps checkpoints of its own in {own}.',
      )
