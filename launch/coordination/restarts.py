"""How often something may be started again."""

import time
from collections.abc import Callable

# Within this time a node may be started again only so often.
WINDOW_SECONDS = 600.0


class RestartBudget:
  """How often something may be started again within a time."""

  def __init__(
    self, max_restarts: int, clock: Callable[[], float] = time.monotonic
  ):
    """Has all of it.

    Args:
      max_restarts: Within `WINDOW_SECONDS`.
      clock: Tells seconds.
    """
    self._max_restarts = max_restarts
    self._clock = clock
    self._taken_at: list[float] = []
    self.num_taken = 0

  def is_left(self) -> bool:
    """Returns whether another restart is allowed now."""
    since = self._clock() - WINDOW_SECONDS
    self._taken_at = [t for t in self._taken_at if t >= since]
    return len(self._taken_at) < self._max_restarts

  def take(self) -> None:
    """Notes a restart."""
    self._taken_at.append(self._clock())
    self.num_taken += 1
