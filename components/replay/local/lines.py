"""Queues of pending items in front of a table."""

import collections

from repertory.components.replay.local import columns


class Line:
  """Pending items of one writer, in order.

  Attributes:
    turn: Position of the writer in the round-robin order; None without it.
    num_pending: Number of pending items.
    is_closed: Whether the writer has closed the queue.
  """

  def __init__(self, turn: int | None):
    self.turn = turn
    self.num_pending = 0
    self.is_closed = False
    self.blocks: collections.deque[columns.Block] = collections.deque()


class Lines:
  """Pending items of all writers, and the order in which they are inserted.

  The order is first come, first served, or round-robin: after the k-th block of
  one writer comes the k-th block of the next one, whatever their speeds. Closed
  queues are skipped.
  """

  def __init__(self, num_turns: int | None):
    """Starts without queues.

    Args:
      num_turns: Number of writers in the round-robin order; None for first
        come, first served.
    """
    self._num_turns = num_turns
    self._now = 0
    self._by_turn: dict[int, Line] = {}
    self._order: collections.deque[Line] = collections.deque()

  def open(self, turn: int | None) -> Line:
    """Opens a queue for a writer.

    Args:
      turn: Position in the round-robin order, from 0; None without it.

    Raises:
      ValueError: If the position is out of range or taken.
    """
    line = Line(turn)
    if self._num_turns is None:
      if turn is not None:
        raise ValueError(f'turn must be None for this table, got {turn}.')
      return line
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
    self._by_turn[turn] = line
    return line

  def append(self, line: Line, block: columns.Block) -> None:
    """Appends items to a queue."""
    line.blocks.append(block)
    line.num_pending += block.num_left
    if self._num_turns is None:
      self._order.append(line)

  def first(self) -> Line | None:
    """Returns the queue with the next items; None if none can be inserted."""
    if self._num_turns is None:
      return self._order[0] if self._order else None
    for _ in range(self._num_turns):
      line = self._by_turn.get(self._now)
      if line is None or (not line.blocks and not line.is_closed):
        return None  # Its writer has not written yet.
      if line.blocks:
        return line
      self._next_turn()
    return None

  def advance(self, line: Line, num_items: int) -> None:
    """Records that the first items of a queue were inserted."""
    line.num_pending -= num_items
    block = line.blocks[0]
    block.begin += num_items
    if block.num_left:
      return
    line.blocks.popleft()
    if self._num_turns is None:
      self._order.popleft()
    else:
      self._next_turn()

  def close(self, line: Line) -> None:
    """Closes a queue and drops its items."""
    line.is_closed = True
    line.blocks.clear()
    line.num_pending = 0
    self._order = collections.deque(
      other for other in self._order if other is not line
    )

  def explain(self, line: Line) -> str:
    """Names the writer that must insert first; '' if none has to."""
    if self._num_turns is None or line.turn == self._now:
      return ''
    return (
      f', and writers insert in round-robin order: number {self._now} is next, '
      f'and this is number {line.turn}'
    )

  def _next_turn(self) -> None:
    self._now = (self._now + 1) % (self._num_turns or 1)
