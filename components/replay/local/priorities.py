"""New priorities for a table of this process."""

import numpy as np

from repertory.components.replay import priorities as priorities_lib
from repertory.components.replay.local import table as table_lib


class LocalPriorities(priorities_lib.Priorities):
  """Gives items their new priorities at once."""

  def __init__(self, table: table_lib.Table, floor: float):
    """Changes nothing yet.

    Args:
      table: Whose items the keys name.
      floor: Smallest priority, positive.
    """
    super().__init__(floor)
    self._table = table

  def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    self._table.update_priorities(keys, self._raise_to_floor(priorities))

  def flush(self) -> None:
    """Returns, for there is nothing to wait for."""

  def close(self) -> None:
    """Returns, for nothing is open."""
