"""Items that wait until a table takes them."""

import collections

from repertory.components.replay.local import columns


class Line:
  """What one writer has put and the table has not taken yet, in order.

  Attributes:
    turn: When its writer's turn is; None if writers take none.
    num_pending: Items that wait.
    is_closed: Whether nothing will be put any more.
  """

  def __init__(self, turn: int | None):
    self.turn = turn
    self.num_pending = 0
    self.is_closed = False
    self.blocks: collections.deque[columns.Block] = collections.deque()


class Lines:
  """The lines of all writers, and whose items the table takes next.

  That is whoever came first. Or writers take turns: after the k-th items that
  one of them puts come the k-th of the next one, however fast each of them is.
  One that has closed is left out.
  """

  def __init__(self, num_turns: int | None):
    """Opens none.

    Args:
      num_turns: Writers that take turns; None if they take none.
    """
    self._num_turns = num_turns
    self._now = 0
    self._by_turn: dict[int, Line] = {}
    self._order: collections.deque[Line] = collections.deque()

  def open(self, turn: int | None) -> Line:
    """Opens a line.

    Args:
      turn: When its writer's turn is, from 0; None if writers take none.

    Raises:
      ValueError: If it is nobody's turn, or another's.
    """
    line = Line(turn)
    if self._num_turns is None:
      if turn is not None:
        raise ValueError(f'turn must be None without turns, got {turn}.')
      return line
    if turn is None or not 0 <= turn < self._num_turns:
      raise ValueError(
        f'turn must be in [0, {self._num_turns}), for writers of this table '
        f'take turns; got {turn}.'
      )
    before = self._by_turn.get(turn)
    if before is not None and not before.is_closed:
      raise ValueError(
        f'turn must be of one writer at a time; {turn} is of one already.'
      )
    self._by_turn[turn] = line
    return line

  def append(self, line: Line, block: columns.Block) -> None:
    """Lets items wait in a line."""
    line.blocks.append(block)
    line.num_pending += block.num_left
    if self._num_turns is None:
      self._order.append(line)

  def first(self) -> Line | None:
    """Returns the line whose items are next; None if nobody's can be taken."""
    if self._num_turns is None:
      return self._order[0] if self._order else None
    for _ in range(self._num_turns):
      line = self._by_turn.get(self._now)
      if line is None or (not line.blocks and not line.is_closed):
        return None  # It has not come yet.
      if line.blocks:
        return line
      self._pass_on()
    return None

  def advance(self, line: Line, num_items: int) -> None:
    """Takes note that the first items of a line were taken."""
    line.num_pending -= num_items
    block = line.blocks[0]
    block.begin += num_items
    if block.num_left:
      return
    line.blocks.popleft()
    if self._num_turns is None:
      self._order.popleft()
    else:
      self._pass_on()

  def close(self, line: Line) -> None:
    """Closes a line, and drops what waits in it."""
    line.is_closed = True
    line.blocks.clear()
    line.num_pending = 0
    self._order = collections.deque(
      other for other in self._order if other is not line
    )

  def explain(self, line: Line) -> str:
    """Says for whom a line waits; '' if for none of the other lines."""
    if self._num_turns is None or line.turn == self._now:
      return ''
    return (
      f', and writers take turns: it is that of number {self._now}, and this '
      f'is {line.turn}'
    )

  def _pass_on(self) -> None:
    self._now = (self._now + 1) % (self._num_turns or 1)
