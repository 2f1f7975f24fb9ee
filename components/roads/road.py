"""What carries experience, whatever the way."""

import abc
from collections.abc import Callable

from repertory.components import adders, replay
from repertory.components import experience as experience_lib
from repertory.components.roads import learner_end
from repertory.components.roads import parts as parts_lib

# What checkpoints call the experience that a compiled program keeps itself, see
# `rollouts`.
PROGRAM = 'program'

# And that of data which somebody else has recorded, see `DataRoad`.
DATA = 'data'

# And that of a run with several learners, each of which has a road of its own.
PARTS = 'parts'


class Road(abc.ABC):
  """Carries experience from those who act to the learner.

  It has as many actor ends as there are adders, and one learner end. Whoever
  makes an end closes it.

  Where others compute targets, it has two legs: this one leads to those, each
  of whom has a learner end of it, and `labeled` from those to the learner.

  Attributes:
    kind: What a checkpoint calls it: one kind cannot read another's snapshots.
  """

  kind: str
  _experience: experience_lib.Experience
  _parts: parts_lib.Parts

  @property
  def labeled(self) -> 'Road | None':
    """The leg from those who compute targets; None without such."""
    return None

  @property
  def learned(self) -> 'Road':
    """The leg at whose end the learner is."""
    return self.labeled or self

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
    if max_pending_items is None:
      max_pending_items = self._experience.max_pending_items(batch_size)
    writer = self.make_writer(
      priority=priority,
      version=version,
      max_pending_items=max_pending_items,
    )
    return self._parts.make_adder(self._experience, writer, batch_size)

  @abc.abstractmethod
  def make_writer(
    self,
    *,
    priority: Callable[[], float] = lambda: 1.0,
    version: Callable[[], int] = lambda: 0,
    max_pending_items: int,
  ) -> replay.Writer:
    """Makes what puts items that are made already; see `replay.Writer`."""

  @abc.abstractmethod
  def make_learner_end(self) -> learner_end.LearnerEnd:
    """Makes the learner end, which begins to take items at once."""
