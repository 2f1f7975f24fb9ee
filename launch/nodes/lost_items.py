"""Handling of sampled items that never arrived."""

from typing import Any

from repertory.components import transports


def report(
  name: str, coordinator: Any, end: transports.LearnerSide, num_batches: int
) -> None:
  """Resets batch counts after a batch timeout, and warns of lost items.

  Args:
    name: Name of the waiting node.
    coordinator: The coordinator or its client.
    end: Learner side of the transport.
    num_batches: Number of batches that arrived.
  """
  if lost := end.reset_count(num_batches):
    coordinator.warn(name, f'Reverb lost at most {lost} sampled items')
