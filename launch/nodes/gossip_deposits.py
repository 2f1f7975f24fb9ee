"""Joint checkpoints of several learners."""

import contextlib
import dataclasses
import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components import transports
from repertory.components.checkpoints import checkpointing
from repertory.launch.nodes import checkpoint_transfer, gossip_messages

_RECEIVED, _RECEIVING, _SNAPSHOT = 'received', 'receiving', 'snapshot'
_END = 'end'

# Notice before the common iteration at which all learners of a deterministic
# run save; doubled whenever it was too short.
_NOTICE_SECONDS = 1.0
_LEAST_SECONDS = 0.1  # Minimum interval of a speed measurement.
# Delay before a new attempt if a learner could not save.
_RETRY_SECONDS = 5.0


@dataclasses.dataclass(frozen=True)
class LearnerDeposit:
  """A learner's checkpoint.

  Attributes:
    path: Path of its archive.
    iterations: Iterations of the learner in this run by then.
    is_last: Whether the learner had taken all its steps.
    state: State of the checkpoint.
  """

  path: str
  iterations: int
  is_last: bool
  state: Mapping[str, Any]


class LearnerDeposits(transports.Snapshots):
  """Orders a checkpoint of every learner, and keeps the received ones.

  In a deterministic run, all learners save at the same iteration. Then all that
  have not ended are at the same learner step.
  """

  has_learners = True

  def __init__(
    self,
    directory: str,
    names: Sequence[str],
    *,
    keeps_step: bool,
    timeout_seconds: float,
  ):
    """Reads the restored checkpoint, if it has as many learners.

    Args:
      directory: Folder of restored and received archives.
      names: Names of the learners.
      keeps_step: Whether the run is deterministic.
      timeout_seconds: Timeout of a joint checkpoint.
    """
    self._directory = directory
    self._timeout_seconds = timeout_seconds
    self._names = list(names)
    self._keeps_step = keeps_step
    self._lock = threading.RLock()
    # Files of the checkpoint that the run is resumed from.
    self._restored: Sequence[str] = self._find_restored()
    self._kept: dict[str, LearnerDeposit] = self._read_restored()
    # Received for the open order, by learner; None if it could not save.
    self._met: dict[str, LearnerDeposit | None] = {}
    self._moment: dict[str, LearnerDeposit] = {}
    self._is_taken = threading.Event()
    self._number, self._is_open = 0, False
    self._save_at: int | None = None
    self._notice_seconds = _NOTICE_SECONDS
    self._ordered_at = self._failed_at = -float('inf')
    self._iterations: dict[str, int] = dict.fromkeys(names, 0)
    self._recorded_at: dict[str, float] = {}
    self._iterations_per_second = 0.0
    self._ended: dict[str, LearnerDeposit | None] = {}

  def __str__(self) -> str:
    return 'all learners'

  def kept_of(self, name: str) -> LearnerDeposit | None:
    """Returns the latest checkpoint of a learner; None without one."""
    with self._lock:
      return self._kept.get(name)

  def saved(self) -> Iterator[dict[str, np.ndarray]]:
    """Yields the arrays of each learner in the current checkpoint."""
    for name in self._names:
      yield checkpoint_transfer.read_arrays(self._moment[name].path)

  # Exchange with learners.

  def record_iteration(self, name: str, iterations: int, missed: int) -> None:
    """Records the iteration of a learner, and an order it missed."""
    now = time.monotonic()
    with self._lock:
      seconds = now - self._recorded_at.get(name, -float('inf'))
      speed = (iterations - self._iterations[name]) / max(
        seconds, _LEAST_SECONDS
      )
      self._iterations_per_second = max(self._iterations_per_second, speed)
      self._iterations[name], self._recorded_at[name] = iterations, now
      if self._is_open and missed == self._number:
        self._notice_seconds *= 2
        self._cancel_order()

  def order(self) -> tuple[int, int | None]:
    """Returns number and iteration of the open order; number 0 without one."""
    with self._lock:
      return (self._number, self._save_at) if self._is_open else (0, None)

  def next_iteration(self) -> int:
    """Returns an iteration early enough to announce to all learners."""
    with self._lock:
      most = max(self._iterations.values())
      return most + 4 + int(self._iterations_per_second * self._notice_seconds)

  def forget(self, name: str) -> None:
    """Stops waiting for a restarted learner; its latest checkpoint is used."""
    with self._lock:
      if self._is_open:
        self._met[name] = self._kept.get(name)

  def receive(
    self,
    name: str,
    label: gossip_messages.Label,
    chunk: tuple[int, bytes, bool],
  ) -> int | None:
    """Receives a chunk of a learner's checkpoint.

    Args:
      name: Name of the learner.
      label: Label of the checkpoint.
      chunk: See `checkpoint_transfer.read_chunks`.

    Returns:
      Its learner steps, once a final checkpoint is complete; else None.

    Raises:
      OSError: If it cannot be written; the incomplete file is removed.
    """
    offset, data, is_complete = chunk
    index = self._names.index(name)
    path = os.path.join(self._directory, _RECEIVING, str(index))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
      checkpoint_transfer.write_chunk(path, offset, data)
    except OSError:
      with contextlib.suppress(OSError):
        os.remove(path)
      raise
    if not is_complete:
      return None
    received = os.path.join(
      self._directory, _RECEIVED, f'{index}.{label.number or _END}'
    )
    os.makedirs(os.path.dirname(received), exist_ok=True)
    with self._lock:
      os.replace(path, received)
      state = checkpoint_transfer.read_state(received)
      deposit = LearnerDeposit(received, label.iterations, label.is_last, state)
      self._take(name, label, deposit)
    return None if label.number else state['counts']['learner_steps']

  def fail(self, name: str, label: gossip_messages.Label) -> None:
    """Records that a learner could not save."""
    with self._lock:
      self._take(name, label, None)

  # Joint checkpoints.

  def prepare(self) -> bool:
    """Orders a joint checkpoint; returns True once all have saved."""
    now = time.monotonic()
    with self._lock:
      if not self._is_open:
        if now - self._failed_at > _RETRY_SECONDS:
          self._open_order()
        return False
      if len(self._met) < len(self._names):
        if now - self._ordered_at > self._timeout_seconds:
          missing = [name for name in self._names if name not in self._met]
          raise TimeoutError(
            f'Waited {self._timeout_seconds:g} seconds for a checkpoint of '
            f'{", ".join(missing)}.'
          )
        return False
      met, self._is_open = dict(self._met), False
      whole = {name: one for name, one in met.items() if one is not None}
      if len(whole) < len(met) or not self._is_consistent(whole):
        self._failed_at = now
        return False
      self._kept = whole
      self._notice_seconds = _NOTICE_SECONDS
      return True

  def can_end(self) -> bool:
    """Returns whether the received parts can form the final checkpoint."""
    with self._lock:
      self._is_open = False
      whole = {name: one for name, one in self._ended.items() if one}
      if not self._keeps_step:
        whole = {**self._kept, **whole}
      if len(whole) < len(self._names) or not self._is_consistent(whole):
        return False
      self._kept = whole
      return True

  def have_all_ended(self) -> bool:
    """Returns whether all final checkpoints have been received."""
    with self._lock:
      return len(self._ended) == len(self._names)

  def flush(self) -> None:
    with self._lock:
      self._moment = dict(self._kept)
      # A learner that ended meanwhile has saved for the next checkpoint.
      ended = [one for one in self._ended.values() if one is not None]
      needed = {one.path for one in [*self._moment.values(), *ended]}
      for path in {*self._paths_in(_RECEIVED), *self._restored} - needed:
        with contextlib.suppress(FileNotFoundError):  # Already removed.
          os.remove(path)

  def counts(self) -> Mapping[str, int]:
    if not self._keeps_step:
      return {}
    counts = [one.state['counts'] for one in self._moment.values()]
    names = ('steps', 'episodes', 'learner_steps')
    return {name: sum(one[name] for one in counts) for name in names}

  def describe(self) -> dict[str, Any]:
    states = [one.state for one in self._moment.values()]
    return {
      'is_exact': self._keeps_step and all(s.get('is_exact') for s in states)
    }

  def check_restored(self, checkpoint: checkpointing.Checkpoint) -> None:
    """Does nothing: each learner checks its own part."""

  def write_snapshot(self) -> str:
    folder = os.path.join(self._directory, _SNAPSHOT)
    os.makedirs(folder)
    for index, name in enumerate(self._names):
      path = os.path.join(folder, _file_of(index))
      os.link(self._moment[name].path, path)
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

  # With the lock held.

  def _open_order(self) -> None:
    self._number += 1
    self._is_open = True
    self._ordered_at = time.monotonic()
    self._save_at = self.next_iteration() if self._keeps_step else None
    # Learners that have ended save no more.
    self._met = dict(self._ended)

  def _cancel_order(self) -> None:
    self._is_open = False
    kept = [*self._kept.values(), *self._ended.values()]
    for deposit in self._met.values():
      if deposit is not None and deposit not in kept:
        os.remove(deposit.path)
    self._met = {}

  def _take(
    self,
    name: str,
    label: gossip_messages.Label,
    deposit: LearnerDeposit | None,
  ) -> None:
    if not label.number:
      self._ended[name] = deposit
    # Its final checkpoint also meets the open order.
    if self._is_open and label.number in (0, self._number):
      self._met[name] = deposit

  def _is_consistent(self, deposits: Mapping[str, LearnerDeposit]) -> bool:
    """Returns whether all are of the same iteration, if they must be.

    Learners that have taken all their steps may be earlier.
    """
    iterations = {
      one.iterations for one in deposits.values() if not one.is_last
    }
    return not self._keeps_step or len(iterations) <= 1

  def _find_restored(self) -> list[str]:
    """Returns the paths of all files of the restored checkpoint."""
    folders = (
      os.listdir(self._directory) if os.path.isdir(self._directory) else ()
    )
    return [path for folder in folders for path in self._paths_in(folder)]

  def _paths_in(self, folder: str) -> list[str]:
    """Returns the paths of the files in a folder; none if it does not exist."""
    path = os.path.join(self._directory, folder)
    names = os.listdir(path) if os.path.isdir(path) else ()
    return [os.path.join(path, name) for name in names]

  def _read_restored(self) -> dict[str, LearnerDeposit]:
    """Reads the restored checkpoint, if it has as many learners."""
    by_name = {os.path.basename(path): path for path in self._restored}
    files = [_file_of(index) for index in range(len(self._names))]
    if by_name.keys() != set(files):
      return {}
    return {
      name: LearnerDeposit(
        by_name[file], 0, False, checkpoint_transfer.read_state(by_name[file])
      )
      for name, file in zip(self._names, files)
    }


def _file_of(index: int) -> str:
  return f'learner_{index}.zip'
