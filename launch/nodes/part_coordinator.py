"""View of the coordinator for one of several learners."""

from collections.abc import Callable, Mapping
from typing import Any

from repertory.launch.coordination import kinds


class PartCoordinator:
  """Adds the node name to log rows, and saves the learner's own counts.

  All other calls go to the coordinator.
  """

  def __init__(self, coordinator: Any, node: str):
    """Wraps a coordinator.

    Args:
      coordinator: The coordinator or its client.
      node: Name of the learner's node.
    """
    self._coordinator = coordinator
    self._node = node
    # Returns the run state of this learner's checkpoint.
    self.save: Callable[[], dict[str, Any]] = dict

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs a learner row with the node name."""
    if label != kinds.LEARNER.name:
      raise ValueError(f'label must be {kinds.LEARNER.name!r}, got {label!r}.')
    self._coordinator.write(label, {'node': self._node, **row})

  def __getattr__(self, name: str) -> Any:
    return getattr(self._coordinator, name)
