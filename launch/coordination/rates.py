"""How fast a run goes, lately."""

import collections
import time
from collections.abc import Callable

# Over how much time.
_SECONDS = 10.0


class Rates:
  """Steps per second, of several kinds, over the last seconds."""

  def __init__(self, clock: Callable[[], float] = time.monotonic):
    self._clock = clock
    self._history: collections.deque = collections.deque()

  def measure(self, *counts: int) -> list[float]:
    """Returns how many a second there were of each.

    Args:
      *counts: How many of each kind so far; always the same kinds.
    """
    now = self._clock()
    self._history.append((now, counts))
    while now - self._history[0][0] > _SECONDS and len(self._history) > 2:
      self._history.popleft()
    then, before = self._history[0]
    seconds = now - then
    return [
      (count - old) / seconds if seconds else 0.0
      for count, old in zip(counts, before)
    ]
