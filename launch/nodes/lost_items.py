"""What becomes of items that were sampled and never came."""

from typing import Any

from repertory.components import roads


def tell(
  name: str, coordinator: Any, end: roads.LearnerEnd, num_batches: int
) -> None:
  """Counts from here when a batch did not come, and warns if one was lost.

  Args:
    name: The node's that had waited for it.
    end: Where it waited.
    num_batches: Those that came.
  """
  if lost := end.count_anew(num_batches):
    what = f'Reverb lost items that it had sampled, or {lost} at most'
    coordinator.warn(name, what)
