"""Snapshots of the actors' state, saved with a local table."""

import abc
import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class ActorState:
  """State of the actors at one point in time, for an exact resume.

  Attributes:
    saved: Serialized environments, policies and open episodes.
    num_inserts: Items inserted by then; None for all current items.
    counts: Steps and episodes of the run by then; empty if the reported counts
      match.
  """

  saved: bytes
  num_inserts: int | None = None
  counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


class ActorSnapshots(abc.ABC):
  """Interface that captures the actors' state.

  The learner's thread calls its methods between two updates.
  """

  def prepare(self, num_sampled: int) -> bool:
    """Returns whether the learner has reached a state that can be saved.

    If not, it is called again after the next update. It may also wait, before
    an update that the snapshot must not include.

    Args:
      num_sampled: Items ever sampled from the table.

    Raises:
      signals.Stopped: If the stop signal was set during a wait.
      TimeoutError: If a wait was too long.
    """
    del num_sampled
    return True

  @abc.abstractmethod
  def take(self) -> ActorState | None:
    """Returns the actors' state; None if they are not at the same step."""
