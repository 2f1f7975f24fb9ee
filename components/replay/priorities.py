"""New priorities on their way back to the table."""

import abc
import queue
import threading
import time

import numpy as np

from repertory.components import signals
from repertory.components.replay import connection as connection_lib

# Updates that may wait for the replay server before the learner does.
_QUEUE_LENGTH = 8

# How often a flush looks whether the thread still works.
_SLICE_SECONDS = 0.2


class Priorities(abc.ABC):
  """Gives items the priorities that the learner found.

  One that is not finite is refused; one below the floor is raised to it, so
  that no item is lost for ever.
  """

  def __init__(self, floor: float):
    """Remembers the floor.

    Args:
      floor: Smallest priority, positive.
    """
    if not floor > 0:
      raise ValueError(f'floor must be positive, got {floor}.')
    self._floor = floor

  @abc.abstractmethod
  def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Hands over new priorities.

    Args:
      keys: Which items, uint64 `[B]`.
      priorities: Theirs, `[B]`.

    Raises:
      FloatingPointError: If a priority is not finite.
      TimeoutError: If the table takes none.
    """

  @abc.abstractmethod
  def flush(self) -> None:
    """Waits until the table has all priorities that were handed over.

    Not ended by the stop signal: the last checkpoint is written after it.

    Raises:
      TimeoutError: If the table takes none.
      Exception: What an earlier update met.
    """

  @abc.abstractmethod
  def close(self) -> None:
    """Hands over what is waiting, but does not wait for ever, and ends."""

  def _raise_to_floor(self, priorities: np.ndarray) -> np.ndarray:
    """Returns what the table gets.

    Raises:
      FloatingPointError: If a priority is not finite.
    """
    if not np.isfinite(priorities).all():
      raise FloatingPointError(
        f'Priorities must be finite, got {priorities}: learning diverged.'
      )
    return np.maximum(priorities, self._floor)


class PriorityUpdater(Priorities):
  """Writes priorities to a replay server without making the learner wait.

  Reverb's call has no time-out and a dead server never answers it, so it is
  made in a thread of its own, in the order of `update`. A priority that is not
  finite would freeze the table for good.
  """

  def __init__(
    self,
    connection: connection_lib.Connection,
    table: str,
    floor: float,
  ):
    """Starts the thread.

    Args:
      connection: To the replay server; its time-out and stop signal end a
        wait of `update` for earlier updates.
      table: Whose items the keys name.
      floor: Smallest priority, positive.
    """
    super().__init__(floor)
    self._connection = connection
    self._table = table
    self._error: BaseException | None = None
    self._is_closed = False
    self._queue: queue.Queue = queue.Queue(_QUEUE_LENGTH)
    self._thread = threading.Thread(
      target=self._run, name='priority_updater', daemon=True
    )
    self._thread.start()

  def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    if self._error is not None:
      raise self._error
    priorities = self._raise_to_floor(priorities)
    updates = dict(zip(keys.tolist(), priorities.tolist()))
    try:
      self._queue.put_nowait(updates)
    except queue.Full:
      signals.wait_for(
        lambda seconds: self._put(updates, seconds),
        lambda: (
          f"{self._connection} to take new priorities for table '{self._table}'"
        ),
        self._connection.timeout_seconds,
        self._connection.stop,
      )

  def flush(self) -> None:
    deadline = time.monotonic() + self._connection.timeout_seconds
    is_flushed = threading.Event()
    is_queued = False
    while not (is_queued and is_flushed.wait(_SLICE_SECONDS)):
      if self._error is not None:
        raise self._error
      if time.monotonic() > deadline:
        raise TimeoutError(
          f'Waited {self._connection.timeout_seconds:g} seconds for '
          f'{self._connection} to take the last priorities for table '
          f"'{self._table}'."
        )
      is_queued = is_queued or self._try_to_put(is_flushed, _SLICE_SECONDS)

  def close(self, timeout_seconds: float = 5.0) -> None:
    """Writes what is waiting and ends the thread, within the time-out."""
    try:
      self._queue.put(None, timeout=timeout_seconds)
    except queue.Full:
      # The server does not answer; the thread ends with the call it is in.
      self._is_closed = True
      return
    self._thread.join(timeout_seconds)

  def _put(self, updates, seconds: float) -> bool:
    if self._error is not None:
      raise self._error
    return self._try_to_put(updates, seconds)

  def _try_to_put(self, updates, seconds: float) -> bool:
    try:
      self._queue.put(updates, timeout=seconds)
    except queue.Full:
      return False
    return True

  def _run(self) -> None:
    while not self._is_closed and (updates := self._queue.get()) is not None:
      if isinstance(updates, threading.Event):
        updates.set()
        continue
      try:
        self._connection.client.mutate_priorities(self._table, updates=updates)
      except Exception as error:  # Told to the learner by its next update.
        self._error = error
        return
