"""Who may take how many of the environment steps that are left."""

# Environment steps an actor is granted at once, at most.
_MAX_GRANT = 1000


class StepLeases:
  """Grants environment steps to actors, and takes back what is not used.

  A step is granted, then reported; so the sum of both is never more than the
  run is to have, but for less than one environment batch.
  """

  def __init__(self, max_steps: int, num_actors: int):
    """Grants nothing yet.

    Args:
      max_steps: Steps at which the run ends, those before this start included.
      num_actors: How many share them: the more, the smaller are grants.
    """
    self._max_steps = max_steps
    self._num_actors = num_actors
    self._open: dict[str, int] = {}
    self._num_open = 0  # Their sum.

  def acquire(self, node: str, wanted: int, steps_done: int) -> int:
    """Grants steps to an actor.

    Args:
      wanted: The least that is of use to it.
      steps_done: How far the run is, as reported so far.

    Returns:
      At least `wanted`, or 0 when there are none left.
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
    """Notes that granted steps were taken and reported."""
    self._add(node, -steps)

  def drop(self, node: str) -> None:
    """Takes back all that an actor has not reported, for it is gone."""
    self._num_open -= self._open.pop(node, 0)

  def _add(self, node: str, steps: int) -> None:
    self._open[node] = self._open.get(node, 0) + steps
    self._num_open += steps
