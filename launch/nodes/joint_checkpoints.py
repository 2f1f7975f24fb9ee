"""Joint checkpoints of several learners, possibly on different hosts.

Each learner sends its checkpoints as archives, uncompressed zip files, in
chunks, which bounds the size of a call.
"""

import contextlib
import io
import json
import os
import pathlib
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components import transports
from repertory.components.checkpoints import checkpointing

_CHUNK_BYTES = 4 << 20


def pack(folder: str, path: str) -> None:
  """Packs a checkpoint's folder into a new archive."""
  with open(path, 'wb') as file, zipfile.ZipFile(file, 'w') as archive:
    for one in sorted(pathlib.Path(folder).rglob('*')):
      archive.write(one, one.relative_to(folder))


def unpack(path: str, directory: str) -> None:
  """Adds an archived checkpoint to those of a directory."""
  checkpointing.Checkpointer(directory, max_to_keep=1).add(
    lambda folder: shutil.unpack_archive(path, folder, 'zip')
  )


def read_state(path: str) -> Mapping[str, Any]:
  """Returns the state of an archived checkpoint."""
  with zipfile.ZipFile(path) as archive:
    return json.loads(archive.read(checkpointing.STATE))


def read_arrays(path: str) -> dict[str, np.ndarray]:
  """Returns the arrays of an archived checkpoint."""
  arrays: dict[str, np.ndarray] = {}
  with zipfile.ZipFile(path) as archive:
    for name in archive.namelist():
      if name in (checkpointing.POLICY_ARRAYS, checkpointing.ARRAYS):
        arrays |= checkpointing.read_arrays(io.BytesIO(archive.read(name)))
  return arrays


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
    """Takes over the restored archives, if they are of as many learners."""
    self._directory = directory
    self._files = {name: f'learner_{i}.zip' for i, name in enumerate(names)}
    self._received = os.path.join(directory, 'received')
    self._snapshot = os.path.join(directory, 'snapshot')
    self._lock = threading.Lock()
    # Learners whose archive is not in a joint checkpoint yet.
    self._new: set[str] = set()
    restored = {
      file: os.path.join(folder, file)
      for folder, _, files in os.walk(directory)
      for file in files
    }
    os.makedirs(self._received, exist_ok=True)
    is_of_all = restored.keys() == set(self._files.values())
    for file, path in restored.items():
      if is_of_all:
        os.replace(path, os.path.join(self._received, file))
      else:
        os.remove(path)

  def __str__(self) -> str:
    return 'all learners'

  def kept_of(self, name: str) -> str | None:
    """Returns the latest archive of a learner; None without one."""
    path = os.path.join(self._received, self._files[name])
    return path if os.path.exists(path) else None

  def saved(self) -> Iterator[dict[str, np.ndarray]]:
    """Yields the arrays of each learner in the current checkpoint."""
    for file in self._files.values():
      yield read_arrays(os.path.join(self._snapshot, file))

  def receive(
    self, name: str, offset: int, data: bytes, is_complete: bool
  ) -> None:
    """Receives a chunk of an archive, see `send`."""
    path = os.path.join(self._received, self._files[name])
    try:
      with open(f'{path}.part', 'ab' if offset else 'wb') as file:
        file.write(data)  # They come in order.
    except OSError:
      with contextlib.suppress(OSError):
        os.remove(f'{path}.part')
      raise
    if is_complete:
      with self._lock:
        os.replace(f'{path}.part', path)
        self._new.add(name)

  def prepare(self) -> bool:
    """Returns whether all have sent archives since the last checkpoint."""
    with self._lock:
      return len(self._new) == len(self._files)

  @property
  def is_complete(self) -> bool:
    """Whether there is an archive of every learner, new or not."""
    return all(map(self.kept_of, self._files))

  def flush(self) -> None:
    """Fixes the archives of the next joint checkpoint, as hard links."""
    with self._lock:
      os.makedirs(self._snapshot)
      for file in self._files.values():
        os.link(
          os.path.join(self._received, file),
          os.path.join(self._snapshot, file),
        )
      self._new.clear()

  def describe(self) -> dict[str, Any]:
    return {}

  def check_restored(self, checkpoint: checkpointing.Checkpoint) -> None:
    """Does nothing: each learner checks its own part."""

  def take_snapshot(self) -> Callable[[], str]:
    return lambda: self._snapshot  # Complete since `flush`.

  def remove_snapshots(self) -> None:
    if os.path.isdir(self._snapshot):
      shutil.rmtree(self._snapshot)

  def close(self) -> None:
    """Removes all files; the last checkpoint has its own links to them."""
    shutil.rmtree(self._directory, ignore_errors=True)
