"""Folders behind URLs, such as those of object stores.

The package fsspec is imported when there is such a URL, and not before: who
stores on a disk needs none.
"""

import contextlib
import re
import uuid
from collections.abc import Iterator
from typing import Any

from repertory.components import signals
from repertory.components.settings import SettingError, text_of
from repertory.components.storage import places

_URL = re.compile(r'::|://')
_INSTALL = "pip install 'repertory[storage]'"


def is_url(storage: str) -> bool:
  """Whether a storage is given by a URL, and not by a path."""
  return bool(_URL.search(storage))


def without_secrets(storage: str) -> str:
  """Returns a storage as it can be shown: without a user's password."""
  return re.sub(r'://[^/@]*@', '://***@', storage)


class FsspecPlace(places.Place):
  """A folder behind a URL that fsspec knows."""

  def __init__(self, url: str):
    """Opens it, as far as that can be done without looking there.

    Raises:
      SettingError: If a package is missing, or fsspec does not know the URL.
    """
    shown = without_secrets(url)
    try:
      import fsspec.core  # noqa: PLC0415 An extra.
    except ImportError as error:
      raise SettingError(
        'storage',
        f'must be a path unless the package fsspec is installed, got {shown}: '
        f'{_INSTALL}.',
      ) from error
    try:
      # One of its own: not all of them can be shared by threads.
      file_system, path = fsspec.core.url_to_fs(url, skip_instance_cache=True)
    except ImportError as error:
      raise SettingError(
        'storage',
        f'needs a package that is not installed, got {shown}: '
        f'{text_of(error)}.',
      ) from error
    except Exception as error:  # Of any package behind it.
      raise SettingError(
        'storage',
        f'must be a path or a URL that fsspec can open, got {shown}: '
        f'{type(error).__name__}: {error}.',
      ) from error
    self._system: Any = file_system
    self._root = path.rstrip('/')
    protocol = file_system.protocol
    if 'file' in ([protocol] if isinstance(protocol, str) else protocol):
      self.local_path = path

  def names(self, folder):
    path = self._path(folder)
    with _told(f'{path} cannot be listed'):
      self._system.invalidate_cache()  # Others write there as well.
      try:
        found = self._system.ls(path, detail=False)
      except FileNotFoundError:
        return []
    # Some object stores list the folder itself.
    names = {one.rstrip('/') for one in found} - {path}
    return sorted(name.rpartition('/')[2] for name in names)

  def files(self, folder):
    path = self._path(folder)
    with _told(f'{path} cannot be listed'):
      self._system.invalidate_cache()
      found = self._system.find(path)
    return sorted(one.removeprefix(f'{path}/') for one in found)

  def size(self, name):
    path = self._path(name)
    with _told(f'{path} cannot be found'):
      self._system.invalidate_cache()
      return self._system.info(path)['size']

  def read(self, name) -> Iterator[bytes]:
    path = self._path(name)
    with _told(f'{path} cannot be read'):
      self._system.invalidate_cache()  # Of an old length, it would be cut.
      with self._system.open(path, 'rb') as file:
        while chunk := file.read(places.CHUNK_BYTES):
          yield chunk

  def write(self, name, chunks):
    path = self._path(name)
    with _told(f'{path} cannot be written'):
      self._make_way(path)
      with self._system.open(path, 'wb') as file:
        for chunk in chunks:
          file.write(chunk)

  def publish(self, name, content):
    path = self._path(name)
    temporary = f'{path}.{uuid.uuid4().hex}{places.UNFINISHED}'
    with _told(f'{path} cannot be written'):
      self._make_way(path)
      self._system.pipe_file(temporary, content)
      # A disk renames; an object store copies, which is seen when it is done.
      self._system.mv(temporary, path)

  def copy(self, name, target, count):
    # On a disk of this machine, the bytes go through here anyway.
    if self.local_path is not None or not self._copy_there(name, target):
      self._copy_by_pieces(name, target, count)
    else:
      count(self.size(target))

  def remove(self, name):
    path = self._path(name)
    with _told(f'{path} cannot be removed'):
      self._system.invalidate_cache()
      with contextlib.suppress(FileNotFoundError):
        self._system.rm(path, recursive=True)

  def _path(self, name: str) -> str:
    return f'{self._root}/{name}' if name else self._root

  def _copy_there(self, name: str, target: str) -> bool:
    """Lets the store copy a file; returns whether it can."""
    source, path = self._path(name), self._path(target)
    with _told(f'{source} cannot be copied to {path}'):
      self._make_way(path)
      try:
        self._system.cp_file(source, path)
      except NotImplementedError:
        return False
    return True

  def _make_way(self, path: str) -> None:
    self._system.makedirs(path.rpartition('/')[0], exist_ok=True)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
  """Raises what goes wrong as an OSError that says what was tried."""
  try:
    yield
  except (FileNotFoundError, signals.Stopped, signals.NoAnswerError):
    raise
  except Exception as error:
    raise OSError(f'{what}: {type(error).__name__}: {error}') from error
