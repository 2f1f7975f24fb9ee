"""Joint checkpoints of several learners, possibly on different hosts.

Each learner sends its checkpoints as archives, uncompressed zip files, in
chunks, which bounds the size of a call.
"""

import contextlib
import io
import json
import os
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components import transports
from repertory.components.checkpoints import checkpointing

_CHUNK_BYTES = 4 << 20
_RECEIVED, _RECEIVING, _SNAPSHOT = 'received', 'receiving', 'snapshot'


def pack(folder: str, path: str) -> None:
  """Packs a checkpoint's folder into a new archive."""
  with open(path, 'wb') as file, zipfile.ZipFile(file, 'w') as archive:
    for root, _, names in os.walk(folder):
      for name in sorted(names):
        inside = os.path.relpath(os.path.join(root, name), folder)
        archive.write(os.path.join(root, name), inside)


def unpack(path: str, directory: str) -> None:
  """Adds an archived checkpoint to those of a directory."""

  def extract(folder: str) -> None:
    with zipfile.ZipFile(path) as archive:
      archive.extractall(folder)

  checkpointing.Checkpointer(directory, max_to_keep=1).add(extract)


def read_state(path: str) -> Mapping[str, Any]:
  """Returns the state of an archived checkpoint."""
  with zipfile.ZipFile(path) as archive:
    return json.loads(archive.read(checkpointing.STATE))


def read_arrays(path: str) -> dict[str, np.ndarray]:
  """Returns the arrays of an archived checkpoint."""
  with zipfile.ZipFile(path) as archive:
    data = io.BytesIO(archive.read(checkpointing.ARRAYS))
  with np.load(data, allow_pickle=False) as arrays:
    return {name: arrays[name] for name in arrays.files}


def read_chunk(path: str, offset: int) -> bytes:
  """Returns the chunk of an archive at an offset; b'' at its end."""
  with open(path, 'rb') as file:
    file.seek(offset)
    return file.read(_CHUNK_BYTES)


def send(
  folder: str, path: str, deposit: Callable[[int, bytes, bool], bool]
) -> None:
  """Sends a checkpoint's folder as an archive, which is in `path` meanwhile.

  `deposit` takes offset, bytes and an is-last flag of each chunk, in order; if
  it returns False, no more follow.
  """
  try:
    pack(folder, path)
    size = os.path.getsize(path)
    for offset in range(0, size, _CHUNK_BYTES):
      chunk = read_chunk(path, offset)
      if not deposit(offset, chunk, offset + len(chunk) == size):
        return
  finally:
    with contextlib.suppress(OSError):
      os.remove(path)


class LearnerDeposits(transports.Snapshots):
  """Keeps the newest archived checkpoint of each learner.

  A joint checkpoint is possible once all have sent new ones.
  """

  has_learners = True

  def __init__(self, directory: str, names: Sequence[str]):
    """Finds the restored checkpoint, if it has as many learners."""
    self._directory = directory
    self._names = list(names)
    self._lock = threading.Lock()
    folders = os.listdir(directory) if os.path.isdir(directory) else ()
    # Files of the checkpoint that the run is resumed from.
    self._old = [path for one in folders for path in self._paths_in(one)]
    files = [_file_of(index) for index in range(len(names))]
    by_file = {os.path.basename(path): path for path in self._old}
    # Path of the latest archive of each learner.
    self._kept: dict[str, str] = {}
    if by_file.keys() == set(files):
      self._kept = {name: by_file[file] for name, file in zip(names, files)}
    # Learners whose archive is not in a joint checkpoint yet.
    self._new: set[str] = set()
    self._num_received = 0
    # Archives of the joint checkpoint being written.
    self._moment: dict[str, str] = {}

  def __str__(self) -> str:
    return 'all learners'

  def kept_of(self, name: str) -> str | None:
    """Returns the latest archive of a learner; None without one."""
    with self._lock:
      return self._kept.get(name)

  def saved(self) -> Iterator[dict[str, np.ndarray]]:
    """Yields the arrays of each learner in the current checkpoint."""
    for name in self._names:
      yield read_arrays(self._moment[name])

  def restart(self, name: str) -> None:
    """Waits for no new archive of a learner that resumes from its old one."""
    with self._lock:
      if name in self._kept:
        self._new.add(name)

  def receive(
    self, name: str, offset: int, data: bytes, is_complete: bool
  ) -> None:
    """Receives a chunk of an archive, see `send`."""
    index = self._names.index(name)
    path = os.path.join(self._directory, _RECEIVING, str(index))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
      with open(path, 'ab' if offset else 'wb') as file:  # They come in order.
        file.write(data)
    except OSError:
      with contextlib.suppress(OSError):
        os.remove(path)
      raise
    if not is_complete:
      return
    folder = os.path.join(self._directory, _RECEIVED)
    os.makedirs(folder, exist_ok=True)
    with self._lock:
      self._num_received += 1
      received = os.path.join(folder, f'{index}.{self._num_received}')
      os.replace(path, received)
      self._kept[name] = received
      self._new.add(name)

  def prepare(self) -> bool:
    """Returns whether all have sent archives since the last checkpoint."""
    with self._lock:
      return len(self._new) == len(self._names)

  @property
  def is_complete(self) -> bool:
    """Whether there is an archive of every learner, new or not."""
    with self._lock:
      return len(self._kept) == len(self._names)

  def flush(self) -> None:
    """Fixes the archives of the next joint checkpoint, and removes others."""
    with self._lock:
      self._moment = dict(self._kept)
      self._new.clear()
      needed = set(self._moment.values())
      for path in {*self._paths_in(_RECEIVED), *self._old} - needed:
        with contextlib.suppress(FileNotFoundError):  # Already removed.
          os.remove(path)

  def describe(self) -> dict[str, Any]:
    return {}

  def check_restored(self, checkpoint: checkpointing.Checkpoint) -> None:
    """Does nothing: each learner checks its own part."""

  def write_snapshot(self) -> str:
    folder = os.path.join(self._directory, _SNAPSHOT)
    os.makedirs(folder)
    for index, name in enumerate(self._names):
      os.link(self._moment[name], os.path.join(folder, _file_of(index)))
    return folder

  def is_snapshot_taken(self) -> bool:
    return True  # Since `flush`.

  def remove_snapshots(self) -> None:
    folder = os.path.join(self._directory, _SNAPSHOT)
    if os.path.isdir(folder):
      shutil.rmtree(folder)

  def close(self) -> None:
    """Removes all files; the last checkpoint has its own links to them."""
    shutil.rmtree(self._directory, ignore_errors=True)

  def _paths_in(self, folder: str) -> list[str]:
    path = os.path.join(self._directory, folder)
    names = os.listdir(path) if os.path.isdir(path) else ()
    return [os.path.join(path, name) for name in names]


def _file_of(index: int) -> str:
  return f'learner_{index}.zip'
