"""Restart budget and rules for nodes that end too early."""

import time
from collections.abc import Callable

from repertory.launch.coordination import kinds
from repertory.launch.experiments import failures

# Time window of a restart budget.
WINDOW_SECONDS = 600.0


class RestartBudget:
  """Limit on the number of restarts within a time window."""

  def __init__(
    self, max_restarts: int, clock: Callable[[], float] = time.monotonic
  ):
    """Starts with the full budget.

    Args:
      max_restarts: Maximum restarts within `WINDOW_SECONDS`.
      clock: Clock in seconds.
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
    """Counts a restart."""
    self._taken_at.append(self._clock())
    self.num_taken += 1


def may_replace(node: str, budget: RestartBudget) -> bool:
  """Returns whether a single node that ended may be restarted.

  Args:
    node: Name of the node.
    budget: Restart budget of the node.
  """
  return kinds.kind_of(node).is_replaceable and budget.is_left()


def may_start_all_again(
  failure: failures.Failure, budget: RestartBudget
) -> bool:
  """Returns whether all nodes may resume from the last checkpoint.

  True only after the loss of a node that is not replaceable. A node that raised
  would raise again, and the loss of a replaceable one ends the run only once
  its own budget is used up.

  Args:
    failure: Failure that ended the run.
    budget: Restart budget of the whole run.
  """
  is_replaceable = kinds.kind_of(failure.node).is_replaceable
  return failure.is_lost and not is_replaceable and budget.is_left()
