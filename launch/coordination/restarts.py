"""What is started again when it has ended too early, and how often."""

import time
from collections.abc import Callable

from repertory.launch import failures
from repertory.launch.coordination import kinds

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


def may_replace(node: str, budget: RestartBudget) -> bool:
  """Returns whether a node that ended may be started again by itself.

  Args:
    budget: The node's own.
  """
  return kinds.kind_of(node).is_replaceable and budget.is_left()


def may_start_all_again(
  failure: failures.Failure, budget: RestartBudget
) -> bool:
  """Returns whether all may go on from the last checkpoint after a failure.

  Only after the loss of a node that the others cannot do without. One that
  raised would raise again, and the loss of another one ends the run only when
  there have been too many.

  Args:
    budget: The whole program's.
  """
  is_replaceable = kinds.kind_of(failure.node).is_replaceable
  return failure.is_lost and not is_replaceable and budget.is_left()
