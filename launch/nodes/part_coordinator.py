"""The coordinator, as it is seen by one of several learners of a run."""

from collections.abc import Callable, Mapping
from typing import Any

from repertory.launch.coordination import kinds


class PartCoordinator:
  """Tells whose rows are written, and keeps the counts of a part apart.

  All else is the coordinator's.
  """

  def __init__(self, coordinator: Any, node: str):
    """Counts nothing yet.

    Args:
      coordinator: Or its client.
      node: Name of the node that is the part.
    """
    self._coordinator = coordinator
    self._node = node
    # Returns what a checkpoint of the part holds of it.
    self.save: Callable[[], dict[str, Any]] = dict

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs a row of the part's learner."""
    if label != kinds.LEARNER.name:
      raise ValueError(f'label must be {kinds.LEARNER.name!r}, got {label!r}.')
    self._coordinator.write(label, {'node': self._node, **row})

  def __getattr__(self, name: str) -> Any:
    return getattr(self._coordinator, name)
