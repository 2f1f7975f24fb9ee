"""Folders on disks or behind URLs, for checkpoints and locks."""

import contextlib
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError
from repertory.components.runtime import signals

CHUNK_BYTES = 2**20
# Suffix of incomplete files, which readers ignore.
UNFINISHED = '.unfinished'

_URL = re.compile(r'::|://')


def without_secrets(storage: str) -> str:
  """Returns a path or URL without its password, for messages."""
  return re.sub(r'://[^/@]*@', '://***@', storage)


class StorageFolder:
  """A folder at a path, or behind a URL that fsspec supports.

  Names are paths relative to the folder, with '/'; '' is the folder itself.
  All failures are OSErrors that name the entry, whatever the package behind the
  URL raises; missing files are FileNotFoundErrors.

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

    shown = without_secrets(storage)
    url = storage if _URL.search(storage) else os.path.abspath(storage)
    try:
      # A separate instance, because not all can be shared by threads.
      system, path = fsspec.core.url_to_fs(url, skip_instance_cache=True)
    except Exception as error:  # The package behind it may raise any type.
      raise SettingError(
        'storage',
        f'must be a path or a URL that fsspec can open, got {shown}: '
        f'{type(error).__name__}: {error}.',
      ) from error
    self._system: Any = system
    self._root = path.rstrip('/')
    is_local = isinstance(system, local.LocalFileSystem)
    self.local_path = path if is_local else None

  def names(self, folder: str) -> list[str]:
    """Returns the sorted entries of a folder; empty if it does not exist."""
    with self._access(folder, 'listed') as path:
      try:
        found = self._system.ls(path, detail=False)
      except FileNotFoundError:
        return []
    # Some object stores list the folder itself.
    names = {one.rstrip('/') for one in found} - {path}
    return sorted(name.rpartition('/')[2] for name in names)

  def read(self, name: str) -> Iterator[bytes]:
    """Yields the contents of a file, in chunks."""
    with (
      self._access(name, 'read') as path,
      self._system.open(path, 'rb') as file,
    ):
      while chunk := file.read(CHUNK_BYTES):
        yield chunk

  def write(self, name: str, chunks: Iterable[bytes]) -> None:
    """Writes a file and its parents; durable when this returns."""
    size = 0
    with self._access(name, 'written') as path:
      self._system.makedirs(os.path.dirname(path), exist_ok=True)
      with self._system.open(path, 'wb') as file:
        for chunk in chunks:
          file.write(chunk)
          size += len(chunk)
        if self.local_path is not None:
          file.flush()
          os.fsync(file.fileno())
      self._sync_folders(path)
      self._system.invalidate_cache()
      found = self._system.size(path)
      if found != size:
        raise OSError(f'it should have {size} bytes, has {found}')

  def publish(self, name: str, content: bytes) -> None:
    """Writes a small file atomically: others see all of it or nothing."""
    temporary = f'{name}.{uuid.uuid4().hex}{UNFINISHED}'
    try:
      self.write(temporary, [content])
      with self._access(name, 'written') as path:
        # A disk renames; copies of object stores are visible when complete.
        self._system.mv(self._path(temporary), path)
    except OSError:
      with contextlib.suppress(OSError):
        self.remove(temporary)
      raise
    self._sync_folders(path)

  def move(self, folder: str, target: str) -> None:
    """Moves a folder; object stores copy all files, then remove the old."""
    with self._access(folder, f'moved to {target}') as source:
      path = self._path(target)
      self._system.makedirs(os.path.dirname(path), exist_ok=True)
      self._system.mv(source, path, recursive=True)
      self._sync_folders(path)

  def remove(self, name: str) -> None:
    """Removes a file, or a folder with its contents, if it exists."""
    with (
      self._access(name, 'removed') as path,
      contextlib.suppress(FileNotFoundError),
    ):
      self._system.rm(path, recursive=True)

  def _path(self, name: str) -> str:
    return f'{self._root}/{name}' if name else self._root

  @contextlib.contextmanager
  def _access(self, name: str, action: str) -> Iterator[str]:
    """Yields the path of an entry; converts errors to OSErrors that name it."""
    path = self._path(name)
    try:
      self._system.invalidate_cache()  # Others write there, too.
      yield path
    except (
      FileNotFoundError,
      checkpointing.CheckpointError,
      signals.Stopped,
      signals.NoAnswerError,
    ):
      raise
    except Exception as error:
      raise OSError(
        f'{path} cannot be {action}: {type(error).__name__}: {error}'
      ) from error

  def _sync_folders(self, path: str) -> None:
    """Waits until a local disk has the directory entries of a file."""
    while self.local_path is not None and len(path) > len(self._root) + 1:
      path = os.path.dirname(path)
      checkpointing.sync_folder(path)
