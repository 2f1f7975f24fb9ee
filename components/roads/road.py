"""What carries experience, whatever the way."""

import abc
from collections.abc import Callable

from repertory.components import adders
from repertory.components.roads import learner_end

# What checkpoints call the experience that a compiled program keeps itself, see
# `rollouts`.
PROGRAM = 'program'

# And that of data which somebody else has recorded, see `DataRoad`.
DATA = 'data'


class Road(abc.ABC):
  """Carries experience from those who act to the learner.

  It has as many actor ends as there are adders, and one learner end. Whoever
  makes an end closes it.

  Attributes:
    kind: What a checkpoint calls it: one kind cannot read another's snapshots.
  """

  kind: str

  @abc.abstractmethod
  def make_adder(
    self,
    batch_size: int,
    *,
    priority: Callable[[], float],
    version: Callable[[], int],
    max_pending_items: int | None = None,
  ) -> adders.Adder:
    """Makes an actor end: an adder whose items go down the road.

    Args:
      batch_size: Slots of the environment batch.
      priority: Gives the priority of a new item.
      version: Gives the learner steps of the variables that act.
      max_pending_items: Items that may be on their way while it acts; None for
        what the experience says.
    """

  @abc.abstractmethod
  def make_learner_end(self) -> learner_end.LearnerEnd:
    """Makes the learner end, which begins to take items at once."""
