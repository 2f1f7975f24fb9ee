"""Storage backend for URLs, such as those of object stores.

The package fsspec is imported with the first URL only, because paths do not
need it.
"""

import contextlib
import re
import uuid
from collections.abc import Iterator
from typing import Any

from repertory.components.checkpoints import backends
from repertory.components.config.settings import SettingError, text_of
from repertory.components.runtime import signals

_URL = re.compile(r'::|://')
_INSTALL = "pip install 'repertory[storage]'"


def is_url(storage: str) -> bool:
  """Returns whether a storage is a URL instead of a path."""
  return bool(_URL.search(storage))


def without_secrets(storage: str) -> str:
  """Returns a storage without its password, for messages."""
  return re.sub(r'://[^/@]*@', '://***@', storage)


class FsspecBackend(backends.StorageBackend):
  """A folder behind a URL that fsspec supports."""

  def __init__(self, url: str):
    """Opens the URL without accessing its contents.

    Raises:
      SettingError: If a package is missing, or fsspec does not support the URL.
    """
    shown = without_secrets(url)
    try:
      import fsspec.core  # noqa: PLC0415 Optional.
    except ImportError as error:
      raise SettingError(
        'storage',
        f'must be a path unless the package fsspec is installed, got {shown}: '
        f'{_INSTALL}.',
      ) from error
    try:
      # A separate instance, because not all can be shared by threads.
      file_system, path = fsspec.core.url_to_fs(url, skip_instance_cache=True)
    except ImportError as error:
      raise SettingError(
        'storage',
        f'needs a package that is not installed, got {shown}: '
        f'{text_of(error)}.',
      ) from error
    except Exception as error:  # The package behind it may raise any type.
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
    with _os_errors(f'{path} cannot be listed'):
      self._system.invalidate_cache()  # Others write there, too.
      try:
        found = self._system.ls(path, detail=False)
      except FileNotFoundError:
        return []
    # Some object stores list the folder itself.
    names = {one.rstrip('/') for one in found} - {path}
    return sorted(name.rpartition('/')[2] for name in names)

  def files(self, folder):
    path = self._path(folder)
    with _os_errors(f'{path} cannot be listed'):
      self._system.invalidate_cache()
      found = self._system.find(path)
    return sorted(one.removeprefix(f'{path}/') for one in found)

  def size(self, name):
    path = self._path(name)
    with _os_errors(f'{path} cannot be found'):
      self._system.invalidate_cache()
      return self._system.info(path)['size']

  def read(self, name) -> Iterator[bytes]:
    path = self._path(name)
    with _os_errors(f'{path} cannot be read'):
      self._system.invalidate_cache()  # An old length would truncate it.
      with self._system.open(path, 'rb') as file:
        while chunk := file.read(backends.CHUNK_BYTES):
          yield chunk

  def write(self, name, chunks):
    path = self._path(name)
    with _os_errors(f'{path} cannot be written'):
      self._make_folders(path)
      with self._system.open(path, 'wb') as file:
        for chunk in chunks:
          file.write(chunk)

  def publish(self, name, content):
    path = self._path(name)
    temporary = f'{path}.{uuid.uuid4().hex}{backends.UNFINISHED}'
    with _os_errors(f'{path} cannot be written'):
      self._make_folders(path)
      self._system.pipe_file(temporary, content)
      # A disk renames; an object store copies, which is visible when complete.
      self._system.mv(temporary, path)

  def copy(self, name, target, count):
    # On a local disk, the bytes pass through this process anyway.
    if self.local_path is not None or not self._copy_in_storage(name, target):
      self._copy_by_pieces(name, target, count)
    else:
      count(self.size(target))

  def remove(self, name):
    path = self._path(name)
    with _os_errors(f'{path} cannot be removed'):
      self._system.invalidate_cache()
      with contextlib.suppress(FileNotFoundError):
        self._system.rm(path, recursive=True)

  def _path(self, name: str) -> str:
    return f'{self._root}/{name}' if name else self._root

  def _copy_in_storage(self, name: str, target: str) -> bool:
    """Copies a file within the storage; returns whether it supports that."""
    source, path = self._path(name), self._path(target)
    with _os_errors(f'{source} cannot be copied to {path}'):
      self._make_folders(path)
      try:
        self._system.cp_file(source, path)
      except NotImplementedError:
        return False
    return True

  def _make_folders(self, path: str) -> None:
    self._system.makedirs(path.rpartition('/')[0], exist_ok=True)


@contextlib.contextmanager
def _os_errors(what: str) -> Iterator[None]:
  """Converts errors to an OSError that names the failed operation."""
  try:
    yield
  except (FileNotFoundError, signals.Stopped, signals.NoAnswerError):
    raise
  except Exception as error:
    raise OSError(f'{what}: {type(error).__name__}: {error}') from error
