"""Interface of writers, which insert an adder's items into a table."""

import abc
import contextlib
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from repertory.components.replay import tables, waits
from repertory.components.runtime import signals


class Writer(abc.ABC):
  """Writes items to a table, and waits for its rate limiter.

  One writer serves all slots of an adder, so a step of the whole batch waits
  for the table once. In that wait the rate limiter blocks the actors: without a
  call of `wait`, actors are not limited at all. Callers may reuse their arrays
  after each call.

  Attributes:
    table: Description of the table.
    version: Returns the learner steps of the acting variables, for items that
      record them.
    num_items: Items written so far.
  """

  def __init__(
    self,
    place: waits.WaitPolicy,
    table: tables.TableSpec,
    *,
    priority: Callable[[], float] = lambda: 1.0,
    version: Callable[[], int] = lambda: 0,
    max_pending_items: int = 0,
  ):
    """Initializes the writer; `open` connects it.

    Args:
      place: Settings of waits; the connection to a server.
      table: Description of the table.
      priority: Returns the priority of a new item.
      version: Returns the learner steps of the acting variables.
      max_pending_items: Maximum number of pending items without a wait.
    """
    self.table = table
    self.version = version
    self.num_items = 0
    self._place = place
    self._packing = table.packing
    self._priority = priority
    self._max_pending_items = max_pending_items
    self._num_pending = 0  # In the table's unit: bundles, if it has any.

  @property
  def shared(self) -> Sequence[int]:
    """Indices of leaves that items may store by reference."""
    return self._packing.whole

  @abc.abstractmethod
  def open(self, num_alive: int) -> None:
    """Opens the writer; the `num_alive` latest kept rows can be used."""

  @abc.abstractmethod
  def keep(self, leaves: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
    """Stores `shared` leaves `[B, ...]`, by index.

    Returns references in their place, as objects `[B]`.
    """

  @abc.abstractmethod
  def put(self, leaves: Sequence[np.ndarray]) -> None:
    """Writes K items.

    Args:
      leaves: Arrays `[K, ...]` in the order of the signature; all or none of
        the `shared` ones as references `[K]` from `keep`.

    Raises:
      ValueError: If leaves do not match the signature, or a priority is bad.
    """

  def is_ahead(self) -> bool:
    """Returns whether more than `max_pending_items` may be pending."""
    pending = self._num_pending * self.table.bundle_size
    return pending > self._max_pending_items

  def wait(self) -> None:
    """Waits until at most half of `max_pending_items` is pending.

    Raises:
      signals.Stopped: If the stop signal was set during the wait.
      TimeoutError: If the table did not accept the items in time.
    """
    self._drain(self._max_pending_items // 2)

  def flush(self) -> None:
    """Waits until the table has all items; raises as `wait` does."""
    if self._num_pending:
      self._drain(0)

  def close(self) -> None:
    """Flushes, unless the stop signal is set, and closes the writer."""
    try:
      with contextlib.suppress(signals.Stopped):
        self._drain(0)
    finally:
      self._close()

  @abc.abstractmethod
  def _try_to_drain(self, num_pending: int, seconds: float) -> bool:
    """Waits up to `seconds` until at most `num_pending` items are pending."""

  @abc.abstractmethod
  def _close(self) -> None:
    """Closes the writer and drops pending items."""

  @abc.abstractmethod
  def _ask(self) -> tables.TableInfo:
    """Returns the table's status, or raises the reason why it is unknown."""

  def _next_priority(self) -> float:
    """Returns the priority of a new item, if it is valid."""
    priority = self._priority()
    if not math.isfinite(priority) or priority < 0:
      raise ValueError(
        f'The priority of a new item must be finite and not negative, got '
        f'{priority}.'
      )
    return priority

  def _drain(self, max_pending_items: int) -> None:
    num_pending = max_pending_items // self.table.bundle_size
    signals.wait_for(
      lambda seconds: self._try_to_drain(num_pending, seconds),
      self._describe_wait,
      self._place.timeout_seconds,
      self._place.stop,
    )
    self._num_pending = num_pending

  def _describe_wait(self) -> str:
    return (
      f"table '{self.table.name}' of {self._place} to accept new items; its "
      f'rate limiter blocks actors until the learner has sampled enough. '
      f'{waits.describe(self.table, self._ask)}'
    )
