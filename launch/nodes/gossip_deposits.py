"""Joint checkpoints of several learners."""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from repertory.components import transports
from repertory.components.checkpoints import checkpointing
from repertory.launch.nodes import checkpoint_transfer

_RECEIVED, _RECEIVING, _SNAPSHOT = 'received', 'receiving', 'snapshot'


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
      yield checkpoint_transfer.read_arrays(self._moment[name])

  def restart(self, name: str) -> None:
    """Waits for no new archive of a learner that resumes from its old one."""
    with self._lock:
      if name in self._kept:
        self._new.add(name)

  def receive(
    self, name: str, offset: int, data: bytes, is_complete: bool
  ) -> None:
    """Receives a chunk of an archive, see `checkpoint_transfer.read_chunks`."""
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
