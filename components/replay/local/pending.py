"""Queues of pending items in front of a table, one per writer."""

import collections
from typing import NamedTuple

import numpy as np


class Items(NamedTuple):
  """Items of a table.

  Attributes:
    leaves: Leaves in the order of the signature: small ones `[K, ...]`, large
      ones as objects `[K]`, arrays that never change.
    priorities: float64 `[K]`.
  """

  leaves: list[np.ndarray]
  priorities: np.ndarray

  def part(self, begin: int, end: int | None = None) -> 'Items':
    """Returns views of the items from `begin` to `end`, exclusive."""
    leaves = [leaf[begin:end] for leaf in self.leaves]
    return Items(leaves, self.priorities[begin:end])


class WriterQueue:
  """Pending items of one writer, in order, and its turn if there is one."""

  def __init__(self, turn: int | None):
    self.turn = turn
    self.num_pending = 0
    self.is_closed = False
    self.blocks: collections.deque[Items] = collections.deque()


class WriterQueues:
  """Pending items of all writers, and the order in which they are inserted.

  The order is first come, first served, or round-robin: after the k-th block of
  one writer comes the k-th block of the next one, whatever their speeds. Closed
  queues are skipped.
  """

  def __init__(self, num_turns: int | None):
    """Starts without queues; `num_turns` is None for first come."""
    self._num_turns = num_turns
    self._now = 0
    self._by_turn: dict[int, WriterQueue] = {}
    self._order: collections.deque[WriterQueue] = collections.deque()

  def open(self, turn: int | None) -> WriterQueue:
    """Opens a queue for a writer, at its position in the round-robin order."""
    queue = WriterQueue(turn)
    if self._num_turns is None:
      return queue
    if turn is None or not 0 <= turn < self._num_turns:
      raise ValueError(
        f'turn must be in [0, {self._num_turns}), for this table inserts '
        f'items of its writers in round-robin order; got {turn}.'
      )
    before = self._by_turn.get(turn)
    if before is not None and not before.is_closed:
      raise ValueError(
        f'turn must be unique among open writers, but {turn} is in use.'
      )
    self._by_turn[turn] = queue
    return queue

  def append(self, queue: WriterQueue, items: Items) -> None:
    """Appends items to a queue."""
    queue.blocks.append(items)
    queue.num_pending += len(items.priorities)
    if self._num_turns is None:
      self._order.append(queue)

  def first(self) -> WriterQueue | None:
    """Returns the queue with the next items; None if none can be inserted."""
    if self._num_turns is None:
      return self._order[0] if self._order else None
    for _ in range(self._num_turns):
      queue = self._by_turn.get(self._now)
      if queue is None or (not queue.blocks and not queue.is_closed):
        return None  # Its writer has not written yet.
      if queue.blocks:
        return queue
      self._now = (self._now + 1) % self._num_turns
    return None

  def advance(self, queue: WriterQueue, num_items: int) -> None:
    """Records that the first items of a queue were inserted."""
    queue.num_pending -= num_items
    items = queue.blocks.popleft()
    if num_items < len(items.priorities):
      queue.blocks.appendleft(items.part(num_items))
    elif self._num_turns is None:
      self._order.popleft()
    else:
      self._now = (self._now + 1) % self._num_turns

  def close(self, queue: WriterQueue) -> None:
    """Closes a queue and drops its items."""
    queue.is_closed = True
    queue.blocks.clear()
    queue.num_pending = 0
    self._order = collections.deque(
      other for other in self._order if other is not queue
    )

  def explain(self, queue: WriterQueue) -> str:
    """Names the writer that must insert first; '' if none has to."""
    if self._num_turns is None or queue.turn == self._now:
      return ''
    return (
      f', and writers insert in round-robin order: number {self._now} is next, '
      f'and this is number {queue.turn}'
    )
