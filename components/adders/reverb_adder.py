"""What all adders share: one writer for all slots, and back-pressure."""

import abc
import contextlib
import dataclasses
from collections.abc import Callable, Sequence

import dm_env
import numpy as np
import reverb
from reverb import errors as reverb_errors

from repertory.components import core, signals, types
from repertory.components.replay import connection as connection_lib
from repertory.components.replay import tables


@dataclasses.dataclass(frozen=True)
class Destination:
  """Where an adder's items go, and what is told with them.

  Attributes:
    connection: To the replay server.
    table: Its table, as the agent describes it.
    priority: Gives the priority of a new item.
    version: Gives the learner steps of the variables that act.
    max_pending_items: Items that may be on their way to the server when `add`
      returns.
  """

  connection: connection_lib.Connection
  table: tables.Table
  priority: Callable[[], float] = lambda: 1.0
  version: Callable[[], int] = lambda: 0
  max_pending_items: int = 0


class ReverbAdder(core.Adder):
  """Turns the timesteps of an environment batch into items of a table.

  All slots share one writer, so that a step of the whole batch waits for the
  server once. That wait is where the rate limiter holds back the actors: a
  writer that never flushes is not held back at all.

  Attributes:
    makes_bundles: Whether all items go through `_create_items`, those of all
      slots together.
  """

  makes_bundles = False

  def __init__(
    self, destination: Destination, batch_size: int, *, num_steps_alive: int
  ):
    """Opens the writer.

    Args:
      destination: Where the items go.
      batch_size: B, slots of the environment batch.
      num_steps_alive: Appended steps per slot that items may still refer to.
    """
    if batch_size < 1:
      raise ValueError(f'batch_size must be at least 1, got {batch_size}.')
    table = destination.table
    if table.bundle_size > 1 and not (
      self.makes_bundles and batch_size % table.bundle_size == 0
    ):
      raise ValueError(
        f"Table '{table.name}' must hold no bundles, for not all slots of this "
        f'{type(self).__name__} end their items together, or they do not fill '
        f'bundles: they are of {table.bundle_size}, and batch_size is '
        f'{batch_size}. Let the bundle_size of the builder return 1.'
      )
    self._destination = destination
    self._batch_size = batch_size
    self._num_refs_alive = num_steps_alive * batch_size
    self._num_items = 0
    self._num_unflushed = 0  # As Reverb counts: bundles, if there are any.
    self._bundle_size = destination.table.bundle_size
    self._columns: list = []
    self._packing = destination.table.packing
    self._writer = self._open_writer()

  @property
  def num_items(self) -> int:
    """Items made so far."""
    return self._num_items

  @abc.abstractmethod
  def add_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode in every slot.

    Args:
      timestep: Batch `[B]`, all FIRST.
    """

  def add(
    self,
    action: types.Nest,
    next_timestep: dm_env.TimeStep,
    extras: types.Nest = (),
  ) -> None:
    """Adds one step of every slot, and waits while the table is ahead.

    Args:
      action: a_t, `[B, ...]`.
      next_timestep: What followed, `[B]`. In a slot that is FIRST again the
        action was ignored and an episode starts.
      extras: What the policy gave with the actions, `[B, ...]`.

    Raises:
      signals.Stopped: If the stop signal was set during the wait.
      TimeoutError: If the table did not take the items in time.
    """
    self.put(action, next_timestep, extras)
    if self.is_ahead():
      self.wait()

  @abc.abstractmethod
  def put(
    self,
    action: types.Nest,
    next_timestep: dm_env.TimeStep,
    extras: types.Nest = (),
  ) -> None:
    """Adds one step of every slot, and makes the items that it completes.

    For those who must not wait: they ask `is_ahead`, and let another thread
    `wait` before they go on. The arguments are those of `add`.
    """

  def is_ahead(self) -> bool:
    """Returns whether more items may be on their way than are to be."""
    pending = self._num_unflushed * self._bundle_size
    return pending > self._destination.max_pending_items

  def wait(self) -> None:
    """Waits until half of what may be on its way is left, in whole bundles.

    Raises:
      signals.Stopped: If the stop signal was set during the wait.
      TimeoutError: If the table did not take the items in time.
    """
    self._flush(self._destination.max_pending_items // 2)

  def flush(self) -> None:
    """Waits until the table has taken all items.

    Raises:
      signals.Stopped: If the stop signal was set during the wait.
      TimeoutError: If the table did not take them in time.
    """
    if self._num_unflushed:
      self._flush(0)

  def reset(self) -> None:
    """Forgets the open episodes: of them, nothing more is written.

    Raises:
      signals.Stopped: If the stop signal was set during the wait for items
        that are on their way.
      TimeoutError: If the table did not take these in time.
    """
    self._flush(0)
    self._writer.close()
    self._writer = self._open_writer()

  def close(self) -> None:
    """Hands over what is complete and closes the writer."""
    # Nobody waits for what the limiter holds back.
    try:
      with contextlib.suppress(signals.Stopped):
        self._flush(0)
    finally:
      self._writer.close()

  def _append(self, step: Sequence) -> list:
    """Appends a step; returns references to what was appended.

    Slots take turns at the writer, so a chunk holds one step: in longer ones
    an item would drag along the steps of others.

    Args:
      step: One value per column, None to leave a column out.

    Returns:
      One reference per column, None where it was left out.
    """
    if not self._columns:
      for index in range(len(step)):
        self._writer.configure(
          (index,), num_keep_alive_refs=self._num_refs_alive, max_chunk_length=1
        )
    self._writer.append(step)
    if not self._columns:
      self._columns = self._writer.history
    return [
      None if value is None else column[-1]
      for value, column in zip(step, self._columns)
    ]

  def _create_items(self, leaves: Sequence[np.ndarray]) -> None:
    """Puts items whose leaves, `[K, ...]`, are in no item besides."""
    for columns in zip(*self._packing.bundle(leaves)):
      self._create_item(self._append(columns))

  def _create_item(self, columns: Sequence) -> None:
    """Puts an item or bundle, its columns in the order of the table's."""
    priority = self._destination.priority()
    if not np.isfinite(priority) or priority < 0:
      raise ValueError(
        f'The priority of a new item must be finite and not negative, got '
        f'{priority}.'
      )
    self._writer.create_item(self._destination.table.name, priority, columns)
    self._num_items += self._bundle_size
    self._num_unflushed += 1

  def _open_writer(self) -> reverb.TrajectoryWriter:
    self._columns = []
    client = self._destination.connection.client
    return client.trajectory_writer(self._num_refs_alive)

  def _flush(self, max_pending_items: int) -> None:
    max_pending = max_pending_items // self._bundle_size
    connection = self._destination.connection

    def attempt(seconds: float) -> bool:
      # Reverb takes 0 ms for ever.
      milliseconds = max(1, int(seconds * 1000))
      try:
        self._writer.flush(max_pending, timeout_ms=milliseconds)
      except reverb_errors.DeadlineExceededError:
        return False
      return True

    signals.wait_for(
      attempt,
      lambda: (
        f"table '{self._destination.table.name}' of {connection} to take new "
        'items; its rate limiter lets actors go on only when the learner has '
        'sampled enough'
      ),
      connection.timeout_seconds,
      connection.stop,
    )
    self._num_unflushed = max_pending
