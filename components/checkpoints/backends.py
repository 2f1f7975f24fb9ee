"""Storage backends: folders with the operations that checkpoints need."""

import abc
import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator

CHUNK_BYTES = 2**20
# Suffix of incomplete files, which readers ignore.
UNFINISHED = '.unfinished'

# Callback with the number of bytes of each piece of a file.
Count = Callable[[int], None]


class StorageBackend(abc.ABC):
  """Interface of storage backends: a folder on a disk or behind a URL.

  Names are paths relative to the folder, with '/'; '' is the folder itself.
  Backends raise OSError for all failures, whatever their library raises, and
  FileNotFoundError for missing files. They are thread-safe.

  Attributes:
    local_path: Path of the folder, if it is on a disk of this machine.
  """

  local_path: str | None = None

  @abc.abstractmethod
  def names(self, folder: str) -> list[str]:
    """Returns the entries of a folder; empty if it does not exist."""

  @abc.abstractmethod
  def files(self, folder: str) -> list[str]:
    """Returns all files below a folder, as paths relative to it."""

  @abc.abstractmethod
  def size(self, name: str) -> int:
    """Returns the size of a file in bytes."""

  @abc.abstractmethod
  def read(self, name: str) -> Iterator[bytes]:
    """Yields the contents of a file, in chunks."""

  @abc.abstractmethod
  def write(self, name: str, chunks: Iterable[bytes]) -> None:
    """Writes a file and its parent folders.

    It is durable when this returns. Before, it may exist in part.
    """

  @abc.abstractmethod
  def publish(self, name: str, content: bytes) -> None:
    """Writes a small file atomically: others see all of it or nothing."""

  @abc.abstractmethod
  def copy(self, name: str, target: str, count: Count) -> None:
    """Copies a file, within the storage if possible.

    Then `count` is called once, because there is no progress before the end.
    """

  def _copy_by_pieces(self, name: str, target: str, count: Count) -> None:
    """Copies a file through this process."""

    def counted() -> Iterator[bytes]:
      for chunk in self.read(name):
        yield chunk
        count(len(chunk))

    self.write(target, counted())

  @abc.abstractmethod
  def remove(self, name: str) -> None:
    """Removes a file, or a folder with its contents, if it exists."""


class LocalBackend(StorageBackend):
  """A folder in a mounted file system."""

  def __init__(self, path: str):
    self.local_path = self._root = os.path.abspath(path)

  def names(self, folder):
    try:
      return os.listdir(self._path(folder))
    except FileNotFoundError:
      return []

  def files(self, folder):
    path = self._path(folder)
    return sorted(
      os.path.relpath(os.path.join(root, name), path)
      for root, _, names in os.walk(path)
      for name in names
    )

  def size(self, name):
    return os.path.getsize(self._path(name))

  def read(self, name):
    with open(self._path(name), 'rb') as file:
      while chunk := file.read(CHUNK_BYTES):
        yield chunk

  def write(self, name, chunks):
    path = self._make_folders(name)
    with open(path, 'wb') as file:
      for chunk in chunks:
        file.write(chunk)
      file.flush()
      os.fsync(file.fileno())
    self._sync_folders(path)

  def publish(self, name, content):
    path = self._make_folders(name)
    temporary = f'{path}.{uuid.uuid4().hex}{UNFINISHED}'
    try:
      with open(temporary, 'wb') as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
      os.replace(temporary, path)
    except OSError:
      with contextlib.suppress(OSError):
        os.remove(temporary)
      raise
    self._sync_folders(path)

  def copy(self, name, target, count):
    source, path = self._path(name), self._make_folders(target)
    try:
      os.link(source, path)  # Files are never modified in place.
    except (FileNotFoundError, FileExistsError):
      raise
    except OSError:  # The file system does not support links.
      self._copy_by_pieces(name, target, count)
      return
    self._sync_folders(path)
    count(os.path.getsize(path))

  def remove(self, name):
    path = self._path(name)
    with contextlib.suppress(FileNotFoundError):
      if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
      else:
        os.remove(path)

  def _path(self, name: str) -> str:
    return os.path.join(self._root, *name.split('/'))

  def _make_folders(self, name: str) -> str:
    """Creates the parent folders of a file; returns its path."""
    path = self._path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path

  def _sync_folders(self, path: str) -> None:
    """Waits until the disk has the directory entries of a file."""
    folder = path
    while folder != self._root:
      folder = os.path.dirname(folder)
      descriptor = os.open(folder, os.O_RDONLY)
      try:
        os.fsync(descriptor)
      finally:
        os.close(descriptor)
