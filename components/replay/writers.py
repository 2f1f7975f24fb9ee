"""What carries items from an adder to a table."""

import abc
import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from repertory.components import signals
from repertory.components.replay import server, tables, waits


class Place(Protocol):
  """Where a table is; as text, it names that in errors."""

  @property
  def timeout_seconds(self) -> float:
    """How long any wait may last."""
    ...

  @property
  def stop(self) -> signals.StopSignal:
    """Ends any wait."""
    ...

  @property
  def warning_seconds(self) -> float | None:
    """After how long a wait in which nothing goes on is told of in a warning.

    None for never.
    """
    ...


class Writer(abc.ABC):
  """Carries items to a table, and waits where it is ahead of it.

  One writer is for all slots of an adder, so that a step of the whole batch
  waits for the table once. That wait is where the rate limiter holds back the
  actors: a writer that is never waited for is not held back at all. Arrays that
  it was given are the caller's again when the call is over.

  Attributes:
    table: The table, as the agent describes it.
    version: Gives the learner steps of the variables that act, for items that
      tell them.
    num_items: Items put so far.
  """

  def __init__(
    self,
    table: tables.Table,
    place: Place,
    *,
    priority: Callable[[], float] = lambda: 1.0,
    version: Callable[[], int] = lambda: 0,
    max_pending_items: int = 0,
  ):
    """Writes nothing yet.

    Args:
      table: The table, as the agent describes it.
      place: Where it is; its time-out and stop signal end a wait.
      priority: Gives the priority of a new item.
      version: Gives the learner steps of the variables that act.
      max_pending_items: Items that may be on their way when nobody waits.
    """
    self.table = table
    self.version = version
    self.num_items = 0
    self._place = place
    self._priority = priority
    self._max_pending_items = max_pending_items
    self._num_pending = 0  # As the table counts: bundles, if there are any.

  @property
  @abc.abstractmethod
  def shared(self) -> Sequence[int]:
    """The leaves of an item that items may refer to and need not hold."""

  @abc.abstractmethod
  def open(self, num_alive: int) -> None:
    """Begins to write.

    Args:
      num_alive: So many of the latest calls of `keep`, or items put, can still
        be referred to.
    """

  @abc.abstractmethod
  def keep(self, leaves: Sequence) -> list:
    """Keeps leaves of one slot for items to refer to.

    Args:
      leaves: Always as many; None to leave one out.

    Returns:
      One reference per leaf, None where it was left out.
    """

  @abc.abstractmethod
  def put(
    self, leaves: Sequence, references: Sequence[Sequence] | None = None
  ) -> None:
    """Puts K items, or the bundles that they fill.

    Args:
      leaves: Arrays `[K, ...]` in the order of the signature; with references,
        of those that are `shared` nothing is asked.
      references: For each item those that are its shared leaves; None if all
        leaves are its own.

    Raises:
      ValueError: If leaves are not as the signature of the table says, or a
        priority is impossible.
    """

  def is_ahead(self) -> bool:
    """Returns whether more items may be on their way than are to be."""
    pending = self._num_pending * self.table.bundle_size
    return pending > self._max_pending_items

  def wait(self) -> None:
    """Waits until half of what may be on its way is left, in whole bundles.

    Raises:
      signals.Stopped: If the stop signal was set during the wait.
      TimeoutError: If the table did not take the items in time.
    """
    self._drain(self._max_pending_items // 2)

  def flush(self) -> None:
    """Waits until the table has taken all items; raises as `wait` does."""
    if self._num_pending:
      self._drain(0)

  def reset(self) -> None:
    """Lets go of what was kept, when the table has taken all items.

    Raises as `wait` does.
    """
    self._drain(0)
    self._close()
    self._reopen()

  def close(self) -> None:
    """Waits until the table has taken all items, and ends."""
    # Nobody waits for what the limiter holds back.
    try:
      with contextlib.suppress(signals.Stopped):
        self._drain(0)
    finally:
      self._close()

  @abc.abstractmethod
  def _reopen(self) -> None:
    """Begins anew, with nothing that was kept."""

  def _insert(self, priority: float, item: Any) -> None:
    """Hands over an item or bundle, for those who put one by one."""
    raise NotImplementedError

  @abc.abstractmethod
  def _try_to_drain(self, num_pending: int, seconds: float) -> bool:
    """Waits at most so long until so much is left; returns whether it is."""

  @abc.abstractmethod
  def _close(self) -> None:
    """Ends, whatever is on its way."""

  def _put_one(self, item: Any) -> None:
    """Puts an item or bundle."""
    self._insert(self._next_priority(), item)
    self.num_items += self.table.bundle_size
    self._num_pending += 1

  def _next_priority(self) -> float:
    """Returns the priority of a new item.

    Raises:
      ValueError: If it is impossible.
    """
    priority = self._priority()
    if not math.isfinite(priority) or priority < 0:
      raise ValueError(
        f'The priority of a new item must be finite and not negative, got '
        f'{priority}.'
      )
    return priority

  def _ask(self) -> server.TableStatus | None:
    """Asks how the table is; raises what says why it does not answer.

    None if it cannot be asked.
    """
    return None

  def _explain_wait(self) -> str:
    """Says what keeps items besides the rate limiter; '' if nothing."""
    return ''

  def _drain(self, max_pending_items: int) -> None:
    num_pending = max_pending_items // self.table.bundle_size
    vigil = waits.Vigil(self._place.warning_seconds, self._ask, self._tell)
    signals.wait_for(
      lambda seconds: self._try_to_drain(num_pending, seconds),
      lambda: self._tell(waits.look(self._ask)).removesuffix('.'),
      self._place.timeout_seconds,
      self._place.stop,
      vigil.keep,
    )
    self._num_pending = num_pending

  def _tell(self, seen: waits.Seen) -> str:
    """Says what is waited for, and how the table is."""
    told = (
      f"table '{self.table.name}' of {self._place} to take new items; its rate "
      'limiter lets actors go on only when the learner has sampled enough'
      f'{self._explain_wait()}.'
    )
    numbers = waits.before_inserts(self.table, seen, self.table.bundle_size)
    return f'{told} {numbers}'.rstrip()
