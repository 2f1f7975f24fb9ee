"""Priority updates of replay tables."""

import abc
import queue
import threading
import time

import numpy as np

from repertory.components.replay import connection as connection_lib
from repertory.components.runtime import signals

# Updates that may be queued before the learner has to wait.
_QUEUE_LENGTH = 8

# Interval of the check that the thread is alive during a flush.
_SLICE_SECONDS = 0.2


class Priorities(abc.ABC):
  """Interface of priority updates.

  Non-finite priorities raise an error. Priorities below the floor are raised to
  it, so that every item can still be sampled.
  """

  def __init__(self, floor: float):
    """Stores the floor.

    Args:
      floor: Smallest priority, positive.
    """
    if not floor > 0:
      raise ValueError(f'floor must be positive, got {floor}.')
    self._floor = floor

  @abc.abstractmethod
  def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Enqueues new priorities.

    Args:
      keys: Keys of the items, uint64 `[B]`.
      priorities: New priorities of these items, `[B]`.

    Raises:
      FloatingPointError: If a priority is not finite.
      TimeoutError: If the table accepts no updates.
    """

  @abc.abstractmethod
  def flush(self) -> None:
    """Waits until the table has received all enqueued priorities.

    The stop signal does not end this wait, because the last checkpoint is
    written after it.

    Raises:
      TimeoutError: If the table accepts no updates.
      Exception: The error of an earlier update.
    """

  @abc.abstractmethod
  def close(self) -> None:
    """Writes the enqueued priorities within a timeout, and closes."""

  def _raise_to_floor(self, priorities: np.ndarray) -> np.ndarray:
    """Returns the priorities, clipped from below.

    Raises:
      FloatingPointError: If a priority is not finite.
    """
    if not np.isfinite(priorities).all():
      raise FloatingPointError(
        f'Priorities must be finite, got {priorities}: learning diverged.'
      )
    return np.maximum(priorities, self._floor)


class PriorityUpdater(Priorities):
  """Writes priorities to a replay server in a background thread.

  Reverb's call has no timeout and a dead server never answers it, so it must
  not block the learner. Updates keep the order of `update`. A non-finite
  priority would freeze the table for good.
  """

  def __init__(
    self,
    connection: connection_lib.Connection,
    table: str,
    floor: float,
  ):
    """Starts the thread.

    Args:
      connection: Connection to the replay server; its timeout and stop signal
        end a wait of `update` for earlier updates.
      table: Name of the table.
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
    """Writes the enqueued updates and ends the thread, within the timeout."""
    try:
      self._queue.put(None, timeout=timeout_seconds)
    except queue.Full:
      # The server does not answer; the thread ends after its current call.
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
      except Exception as error:  # The learner's next update raises it.
        self._error = error
        return
