"""Interfaces of the learner's batches and priority updates."""

import abc
import time
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf
import tree

from repertory.components import types
from repertory.components.replay import tables, waits
from repertory.components.runtime import signals

# Interval of checks for the end of a wait.
_SLICE_SECONDS = 0.2


class BatchTimeout(Exception):
  """Raised when no batch arrives in time; prefetched samples are discarded."""


class Batches(Iterator[types.Sample], abc.ABC):
  """Iterator over batches of a replay table; waits until one is due.

  Attributes:
    batch_timeout_seconds: Time until `next` raises `BatchTimeout`; None
      for never.
  """

  batch_timeout_seconds: float | None = None
  _timeout_start = 0.0
  _is_closed = False

  @property
  @abc.abstractmethod
  def element_spec(self) -> types.Sample:
    """Specs of a batch, as `tf.TensorSpec`s."""

  @abc.abstractmethod
  def __next__(self) -> types.Sample:
    """Returns the next batch, as tensors or as arrays that never change.

    Raises:
      signals.Stopped: If this was closed or the stop signal was set.
      TimeoutError: If no batch arrived in time.
      BatchTimeout: If none arrived within `batch_timeout_seconds`; `next` may
        be called again.
    """

  def reset_timeout(self) -> None:
    """Restarts the timeout of the current wait of another thread, if any."""
    self._timeout_start = time.monotonic()

  @abc.abstractmethod
  def close(self) -> None:
    """Ends current and future waits, and all threads."""

  def _wait(
    self,
    attempt: Callable[[float], types.Sample | None],
    table: tables.TableSpec,
    place: waits.WaitPolicy,
    ask: Callable[[], tables.TableInfo],
  ) -> types.Sample:
    """Repeats short attempts to take a batch; raises errors like `next`."""
    if self._is_closed:
      raise signals.Stopped
    since = time.monotonic()
    seconds = 0.0  # At first, a batch is taken even after the stop signal.
    while (sample := attempt(seconds)) is None:
      if self._is_closed or place.stop.is_set():
        raise signals.Stopped
      seconds = _SLICE_SECONDS
      waited = time.monotonic() - max(since, self._timeout_start)
      if waited > place.timeout_seconds:
        raise waits.no_batch(table, place, ask)
      batch_timeout = self.batch_timeout_seconds
      if batch_timeout is not None and waited > batch_timeout:
        raise BatchTimeout
    return sample


class Priorities(abc.ABC):
  """Interface of priority updates.

  Priorities below a positive floor are raised to it, so that every item can
  still be sampled.
  """

  def __init__(self, floor: float):
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
    """Waits until the table has all enqueued priorities; raises their errors.

    Only a TimeoutError ends it early, as the last checkpoint comes after it.
    """

  @abc.abstractmethod
  def close(self) -> None:
    """Writes the enqueued priorities within a timeout, and closes."""

  def _raise_to_floor(self, priorities: np.ndarray) -> np.ndarray:
    """Clips priorities from below; refuses those that are not finite."""
    if not np.isfinite(priorities).all():
      raise FloatingPointError(
        f'Priorities must be finite, got {priorities}: learning diverged.'
      )
    return np.maximum(priorities, self._floor)


def check_sizes(batch_size: int, prefetch: int) -> None:
  """Raises a ValueError for impossible settings of batches."""
  if batch_size < 1:
    raise ValueError(f'batch_size must be at least 1, got {batch_size}.')
  if prefetch < 0:
    raise ValueError(f'prefetch must be at least 0, got {prefetch}.')


def sample_spec(signature: types.Nest, batch_size: int) -> types.Sample:
  """Returns specs of batches of items, whose specs are the signature."""
  return types.Sample(
    tree.map_structure(
      lambda spec: tf.TensorSpec([batch_size, *spec.shape], spec.dtype),
      signature,
    ),
    keys=tf.TensorSpec([batch_size], tf.uint64),
    probabilities=tf.TensorSpec([batch_size], tf.float64),
    table_sizes=tf.TensorSpec([batch_size], tf.int64),
  )
