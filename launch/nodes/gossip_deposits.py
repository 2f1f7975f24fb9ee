"""Joint checkpoints of several learners."""

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from repertory.components import transports
from repertory.components.checkpoints import checkpointing
from repertory.launch.nodes import checkpoint_transfer

_RECEIVED, _RECEIVING, _SNAPSHOT = 'received', 'receiving', 'snapshot'
_END = 'end'

# Delay before a new attempt if a learner could not save.
_RETRY_SECONDS = 5.0


class LearnerDeposits(transports.Snapshots):
  """Orders a checkpoint of every learner, and keeps the received archives."""

  has_learners = True

  def __init__(
    self, directory: str, names: Sequence[str], timeout_seconds: float
  ):
    """Finds the restored checkpoint, if it has as many learners.

    Args:
      timeout_seconds: Timeout of a joint checkpoint.
    """
    self._directory = directory
    self._timeout_seconds = timeout_seconds
    self._names = list(names)
    self._lock = threading.RLock()
    folders = os.listdir(directory) if os.path.isdir(directory) else ()
    # Files of the checkpoint that the run is resumed from.
    self._restored = [path for one in folders for path in self._paths_in(one)]
    files = [_file_of(index) for index in range(len(names))]
    by_file = {os.path.basename(path): path for path in self._restored}
    # Path of the latest archive of each learner.
    self._kept: dict[str, str] = {}
    if by_file.keys() == set(files):
      self._kept = {name: by_file[file] for name, file in zip(names, files)}
    # Received for the open order, by learner; None if it could not save.
    self._met: dict[str, str | None] = {}
    self._moment: dict[str, str] = {}
    self._is_taken = threading.Event()
    self._number, self._is_open = 0, False
    self._ordered_at = self._failed_at = -float('inf')
    self._ended: dict[str, str | None] = {}

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

  # Exchange with learners.

  def order(self) -> int:
    """Returns the number of the open order; 0 without one."""
    with self._lock:
      return self._number if self._is_open else 0

  def forget(self, name: str) -> None:
    """Stops waiting for a restarted learner; its latest checkpoint is used."""
    with self._lock:
      if self._is_open:
        self._met[name] = self._kept.get(name)

  def receive(
    self, name: str, number: int, offset: int, data: bytes, is_complete: bool
  ) -> int | None:
    """Receives a chunk of a learner's checkpoint.

    Args:
      number: Number of the order; 0 for the final checkpoint.
      offset: See `checkpoint_transfer.read_chunks`, as for the rest.

    Returns:
      Its learner steps, once a final checkpoint is complete; else None.

    Raises:
      OSError: If it cannot be written; the incomplete file is removed.
    """
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
      return None
    received = os.path.join(
      self._directory, _RECEIVED, f'{index}.{number or _END}'
    )
    os.makedirs(os.path.dirname(received), exist_ok=True)
    with self._lock:
      os.replace(path, received)
      self._take(name, number, received)
    if number:
      return None
    return checkpoint_transfer.read_state(received)['counts']['learner_steps']

  def fail(self, name: str, number: int) -> None:
    """Records that a learner could not save."""
    with self._lock:
      self._take(name, number, None)

  # Joint checkpoints.

  def prepare(self) -> bool:
    """Orders a joint checkpoint; returns True once all have saved."""
    now = time.monotonic()
    with self._lock:
      if not self._is_open:
        if now - self._failed_at > _RETRY_SECONDS:
          self._number += 1
          self._is_open = True
          self._ordered_at = now
          # Learners that have ended save no more.
          self._met = dict(self._ended)
        return False
      missing = [name for name in self._names if name not in self._met]
      if missing:
        if now - self._ordered_at > self._timeout_seconds:
          raise TimeoutError(
            f'Waited {self._timeout_seconds:g} seconds for a checkpoint of '
            f'{", ".join(missing)}.'
          )
        return False
      self._is_open = False
      if not self._keep(self._met):
        self._failed_at = now
        return False
      return True

  def can_end(self) -> bool:
    """Returns whether the received parts can form the final checkpoint."""
    with self._lock:
      self._is_open = False
      ended = {name: path for name, path in self._ended.items() if path}
      return self._keep({**self._kept, **ended})

  def have_all_ended(self) -> bool:
    """Returns whether all final checkpoints have been received."""
    with self._lock:
      return len(self._ended) == len(self._names)

  def flush(self) -> None:
    with self._lock:
      self._moment = dict(self._kept)
      # A learner that ended meanwhile has saved for the next checkpoint.
      needed = {*self._moment.values(), *self._ended.values()}
      for path in {*self._paths_in(_RECEIVED), *self._restored} - needed:
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
    self._is_taken.set()
    return folder

  def is_snapshot_taken(self) -> bool:
    return self._is_taken.is_set()

  def remove_snapshots(self) -> None:
    self._is_taken.clear()
    folder = os.path.join(self._directory, _SNAPSHOT)
    if os.path.isdir(folder):
      shutil.rmtree(folder)

  def close(self) -> None:
    """Removes all files; the last checkpoint has its own links to them."""
    shutil.rmtree(self._directory, ignore_errors=True)

  def _take(self, name: str, number: int, path: str | None) -> None:
    """Takes a checkpoint, or None for a failed one; with the lock held."""
    if not number:
      self._ended[name] = path
    # Its final checkpoint also meets the open order.
    if self._is_open and number in (0, self._number):
      self._met[name] = path

  def _keep(self, found: dict[str, str | None]) -> bool:
    """Keeps the archives if all learners have one; with the lock held."""
    whole = {name: path for name, path in found.items() if path}
    if len(whole) < len(self._names):
      return False
    self._kept = whole
    return True

  def _paths_in(self, folder: str) -> list[str]:
    path = os.path.join(self._directory, folder)
    names = os.listdir(path) if os.path.isdir(path) else ()
    return [os.path.join(path, name) for name in names]


def _file_of(index: int) -> str:
  return f'learner_{index}.zip'
