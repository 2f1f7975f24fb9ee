"""Folders on disks or behind URLs, for checkpoints and locks."""

import contextlib
import os
import re
import uuid
from typing import Any

from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError

# Suffix of incomplete files, which readers ignore.
UNFINISHED = '.unfinished'

_URL = re.compile(r'::|://')


def without_secrets(storage: str) -> str:
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
        f'{without_secrets(storage)}: {type(error).__name__}: {error}.',
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
    except OSError:
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
