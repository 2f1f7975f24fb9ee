"""What all adders share: one writer for all slots, and back-pressure."""

import abc
import contextlib
from collections.abc import Callable, Sequence

import dm_env
import numpy as np
import reverb
import tree
from reverb import errors as reverb_errors

from repertory.components import core, signals, types
from repertory.components.replay import connection as connection_lib

Leaves = Sequence[np.ndarray]


class ReverbAdder(core.Adder):
  """Turns the timesteps of an environment batch into items of a table.

  All slots share one writer, so that a step of the whole batch waits for the
  server once. That wait is where the rate limiter holds back the actors: a
  writer that never flushes is not held back at all.
  """

  def __init__(
    self,
    connection: connection_lib.Connection,
    table: str,
    *,
    batch_size: int,
    num_steps_alive: int,
    priority: Callable[[], float] = lambda: 1.0,
    max_pending_items: int = 0,
  ):
    """Opens the writer.

    Args:
      connection: To the replay server.
      table: Where the items go.
      batch_size: B, slots of the environment batch.
      num_steps_alive: Appended steps per slot that items may still refer to.
      priority: Gives the priority of a new item.
      max_pending_items: Items that may be on their way to the server when
        `add` returns.
    """
    if batch_size < 1:
      raise ValueError(f'batch_size must be at least 1, got {batch_size}.')
    self._connection = connection
    self._table = table
    self._batch_size = batch_size
    self._num_refs_alive = num_steps_alive * batch_size
    self._priority = priority
    self._max_pending_items = max_pending_items
    self._num_items = 0
    self._num_unflushed = 0
    self._columns: list = []
    self._writer = self._open_writer()

  @property
  def num_items(self) -> int:
    """Items made so far."""
    return self._num_items

  def add_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode in every slot.

    Args:
      timestep: Batch `[B]`, all FIRST.
    """
    observation = _rows(timestep.observation, self._batch_size)
    for slot in range(self._batch_size):
      self._start(slot, observation[slot])

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
    actions = _rows(action, self._batch_size)
    observations = _rows(next_timestep.observation, self._batch_size)
    extras_rows = _rows(extras, self._batch_size)
    for slot, step_type in enumerate(next_timestep.step_type):
      if step_type == dm_env.StepType.FIRST:
        self._start(slot, observations[slot])
      else:
        self._step(
          slot,
          actions[slot],
          extras_rows[slot],
          next_timestep.reward[slot],
          next_timestep.discount[slot],
          observations[slot],
          last=step_type == dm_env.StepType.LAST,
        )
    if self._num_unflushed > self._max_pending_items:
      self._flush(self._max_pending_items // 2)

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

  @abc.abstractmethod
  def _start(self, slot: int, observation: Leaves) -> None:
    """Begins an episode."""

  @abc.abstractmethod
  def _step(
    self,
    slot: int,
    action: Leaves,
    extras: Leaves,
    reward: np.ndarray,
    discount: np.ndarray,
    next_observation: Leaves,
    last: bool,
  ) -> None:
    """Goes on with an episode, and ends it if `last`."""

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

  def _create_item(self, columns: Sequence) -> None:
    """Puts an item, its columns in the order of the table's signature."""
    priority = self._priority()
    if not np.isfinite(priority) or priority < 0:
      raise ValueError(
        f'The priority of a new item must be finite and not negative, got '
        f'{priority}.'
      )
    self._writer.create_item(self._table, priority, columns)
    self._num_items += 1
    self._num_unflushed += 1

  def _open_writer(self) -> reverb.TrajectoryWriter:
    self._columns = []
    return self._connection.client.trajectory_writer(self._num_refs_alive)

  def _flush(self, max_pending_items: int) -> None:
    def attempt(seconds: float) -> bool:
      try:
        self._writer.flush(max_pending_items, timeout_ms=int(seconds * 1000))
      except reverb_errors.DeadlineExceededError:
        return False
      return True

    signals.wait_for(
      attempt,
      lambda: (
        f"table '{self._table}' of {self._connection} to take new items; its "
        'rate limiter lets actors go on only when the learner has sampled '
        'enough'
      ),
      self._connection.timeout_seconds,
      self._connection.stop,
    )
    self._num_unflushed = max_pending_items


def _rows(nest: types.Nest, batch_size: int) -> list[Leaves]:
  """Splits a nest `[B, ...]` into the leaves of each row."""
  leaves = tree.flatten(nest)
  return [[leaf[row] for leaf in leaves] for row in range(batch_size)]
