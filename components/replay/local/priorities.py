"""Priority updates of a table in this process."""

import numpy as np

from repertory.components.replay import priorities as priorities_lib
from repertory.components.replay.local import table as table_lib


class LocalPriorities(priorities_lib.Priorities):
  """Updates priorities at once."""

  def __init__(self, table: table_lib.Table, floor: float):
    """Initializes the updates.

    Args:
      table: Table with the items.
      floor: Smallest priority, positive.
    """
    super().__init__(floor)
    self._table = table

  def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    self._table.update_priorities(keys, self._raise_to_floor(priorities))

  def flush(self) -> None:
    """Does nothing, because no update is pending."""

  def close(self) -> None:
    """Does nothing."""
