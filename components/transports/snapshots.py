"""Interfaces of checkpointed experience, and of the actors' state with it."""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any

from repertory.components.checkpoints import checkpointing


class Snapshots(abc.ABC):
  """Writes snapshots of the experience, and describes them.

  `str` gives its location, for errors.

  Attributes:
    has_learners: Whether every checkpoint includes it, even without replay,
      because each of several learners needs it to resume.
  """

  has_learners = False

  @abc.abstractmethod
  def flush(self) -> None:
    """Waits until priority updates have arrived; raises their errors.

    This is the first call of a checkpoint, and sets its point in time.
    """

  def prepare(self) -> bool:
    """Returns whether a checkpoint can begin now, or after another update."""
    return True

  def counts(self) -> Mapping[str, int]:
    """Returns the run's counts of the checkpoint, where it lags behind."""
    return {}

  @abc.abstractmethod
  def describe(self) -> dict[str, Any]:
    """Returns plain values that a restored snapshot must match."""

  @abc.abstractmethod
  def check_restored(self, checkpoint: checkpointing.Checkpoint) -> None:
    """Compares the restored state with the result of `describe`.

    Raises:
      CheckpointError: If something is missing.
    """

  @abc.abstractmethod
  def write_snapshot(self) -> str:
    """Writes the experience, and returns the folder.

    It may take long: call it in a thread of its own.
    """

  @abc.abstractmethod
  def is_snapshot_taken(self) -> bool:
    """Returns whether the contents of the current snapshot are fixed."""

  @abc.abstractmethod
  def remove_snapshots(self) -> None:
    """Removes all snapshots, including incomplete ones."""


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
    """
    del num_sampled
    return True

  @abc.abstractmethod
  def take(self) -> ActorState | None:
    """Returns the actors' state; None if they are not at the same step."""
