"""What is saved of those who act, with a table of this process."""

import abc
import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Moment:
  """All that a run needs, besides learner and table, to go on exactly.

  Attributes:
    saved: Where environments, policies and open episodes are.
    num_inserts: Items that were ever inserted by then; None for all there are.
    counts: The run's steps and episodes by then; empty if what was reported is
      of that moment, too.
  """

  saved: bytes
  num_inserts: int | None = None
  counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


class ActorSnapshots(abc.ABC):
  """Knows where those are who act.

  Its methods are called by the learner's thread, between two updates.
  """

  def prepare(self, num_sampled: int) -> bool:
    """Returns whether the learner is at a moment that can be saved.

    If not, it is asked again after the next update. Or it waits, before an
    update that the moment must not have.

    Args:
      num_sampled: Items ever sampled from the table.

    Raises:
      signals.Stopped: If a wait was ended.
      TimeoutError: If a wait was too long.
    """
    del num_sampled
    return True

  @abc.abstractmethod
  def take(self) -> Moment | None:
    """Returns the moment; None if not all are at the same one."""
