"""Step budget: grants the remaining environment steps to actors."""

# Maximum environment steps of one grant.
_MAX_GRANT = 1000


class StepBudget:
  """Step budget: grants environment steps to actors, takes back unused ones.

  A step is first granted, then reported. Granted plus reported steps exceed
  `max_steps` by less than one environment batch.
  """

  def __init__(self, max_steps: int, num_actors: int):
    """Starts without grants.

    Args:
      max_steps: Environment steps at which the run ends, those of resumed runs
        included.
      num_actors: Number of actors; more actors get smaller grants.
    """
    self._max_steps = max_steps
    self._num_actors = num_actors
    self._open: dict[str, int] = {}
    self._num_open = 0  # Their sum.

  def acquire(self, node: str, wanted: int, steps_done: int) -> int:
    """Grants steps to an actor.

    Args:
      wanted: Minimum number of steps the actor can use.
      steps_done: Environment steps reported so far.

    Returns:
      At least `wanted` steps, or 0 when none are left.
    """
    left = self._max_steps - steps_done - self._num_open
    if left <= 0:
      return 0
    # Smaller grants towards the end, so that all actors end together.
    share = left // (4 * self._num_actors)
    granted = max(wanted, min(share, _MAX_GRANT))
    self._add(node, granted)
    return granted

  def give_back(self, node: str, unused: int) -> None:
    """Takes back granted steps that were not taken."""
    self._add(node, -unused)

  def use(self, node: str, steps: int) -> None:
    """Moves reported steps out of the grants."""
    self._add(node, -steps)

  def drop(self, node: str) -> None:
    """Takes back all grants of an actor that has ended."""
    self._num_open -= self._open.pop(node, 0)

  def _add(self, node: str, steps: int) -> None:
    self._open[node] = self._open.get(node, 0) + steps
    self._num_open += steps
