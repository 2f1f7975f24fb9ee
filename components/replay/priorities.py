"""Interface of priority updates."""

import abc

import numpy as np


class Priorities(abc.ABC):
  """Interface of priority updates.

  Non-finite priorities raise an error. Priorities below the floor are raised to
  it, so that every item can still be sampled.
  """

  def __init__(self, floor: float):
    """Stores the floor, the smallest priority; it must be positive."""
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
    """Clips priorities from below; refuses those that are not finite."""
    if not np.isfinite(priorities).all():
      raise FloatingPointError(
        f'Priorities must be finite, got {priorities}: learning diverged.'
      )
    return np.maximum(priorities, self._floor)
