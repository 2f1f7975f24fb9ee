"""Folders that checkpoints are stored in, by the little that this takes."""

import abc
import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator

CHUNK_BYTES = 2**20  # Read and written at once.
# Ends the names of files that nobody is to read yet.
UNFINISHED = '.unfinished'

# Called with the number of bytes after each piece of a file.
Count = Callable[[int], None]


class Place(abc.ABC):
  """A folder, wherever it is.

  Names are paths from there, with '/'; '' is the folder itself. What goes wrong
  is an OSError, whatever the library behind it raises; what is not there, a
  FileNotFoundError. Several threads may use one.

  Attributes:
    local_path: Where it is on this machine's disks, if it is there.
  """

  local_path: str | None = None

  @abc.abstractmethod
  def names(self, folder: str) -> list[str]:
    """Returns what is directly in a folder; nothing if there is none."""

  @abc.abstractmethod
  def files(self, folder: str) -> list[str]:
    """Returns all files under a folder, by names from there."""

  @abc.abstractmethod
  def size(self, name: str) -> int:
    """Returns the bytes of a file."""

  @abc.abstractmethod
  def read(self, name: str) -> Iterator[bytes]:
    """Yields what is in a file, in pieces."""

  @abc.abstractmethod
  def write(self, name: str, chunks: Iterable[bytes]) -> None:
    """Writes a file, and the folders it is in.

    It lasts when this returns. Until then it may be there in part.
    """

  @abc.abstractmethod
  def publish(self, name: str, content: bytes) -> None:
    """Writes a small file that others see whole, or not at all."""

  @abc.abstractmethod
  def copy(self, name: str, target: str, count: Count) -> None:
    """Copies a file, without moving its bytes to here and back if it can.

    Then all of them are counted at its end, for nobody sees them before.
    """

  def _copy_by_pieces(self, name: str, target: str, count: Count) -> None:
    """Copies a file through here."""

    def counted() -> Iterator[bytes]:
      for chunk in self.read(name):
        yield chunk
        count(len(chunk))

    self.write(target, counted())

  @abc.abstractmethod
  def remove(self, name: str) -> None:
    """Removes a file, or a folder with all in it, if it is there."""


class LocalPlace(Place):
  """A folder of a file system that this machine has mounted."""

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
    path = self._make_way(name)
    with open(path, 'wb') as file:
      for chunk in chunks:
        file.write(chunk)
      file.flush()
      os.fsync(file.fileno())
    self._sync_folders(path)

  def publish(self, name, content):
    path = self._make_way(name)
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
    source, path = self._path(name), self._make_way(target)
    try:
      os.link(source, path)  # No file is ever changed in its place.
    except (FileNotFoundError, FileExistsError):
      raise
    except OSError:  # There are no links on this file system.
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

  def _make_way(self, name: str) -> str:
    """Makes the folders of a file; returns its path."""
    path = self._path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path

  def _sync_folders(self, path: str) -> None:
    """Waits until the disk knows a file by its name."""
    folder = path
    while folder != self._root:
      folder = os.path.dirname(folder)
      descriptor = os.open(folder, os.O_RDONLY)
      try:
        os.fsync(descriptor)
      finally:
        os.close(descriptor)
