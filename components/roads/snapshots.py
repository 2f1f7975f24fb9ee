"""What a checkpoint holds besides the learner."""

import abc
from collections.abc import Mapping
from typing import Any

from repertory.components import checkpointing


class Snapshots(abc.ABC):
  """Writes what experience there is, of one moment, and tells of it.

  As text, it names where that is, for errors.

  Attributes:
    has_learners: Whether what it writes is in every checkpoint, also of a run
      without replay, for it is what each of several learners needs to go on.
  """

  has_learners = False

  @abc.abstractmethod
  def flush(self) -> None:
    """Waits until what was learned has arrived; raises what kept it.

    The first of what is called for a checkpoint: its moment is now.
    """

  def prepare(self) -> bool:
    """Returns whether a checkpoint can begin now, or after another update."""
    return True

  def counts(self) -> Mapping[str, int]:
    """Returns the run's counts at the moment, where others are ahead of it."""
    return {}

  @abc.abstractmethod
  def describe(self) -> dict[str, Any]:
    """Returns plain values that are to be found again when it is restored."""

  @abc.abstractmethod
  def check_restored(self, checkpoint: checkpointing.Checkpoint) -> None:
    """Compares what was restored with what `describe` told.

    Raises:
      CheckpointError: If something is missing.
    """

  @abc.abstractmethod
  def write_snapshot(self) -> str:
    """Writes what there is, and returns the folder.

    It takes as long as it takes: call it in a thread of its own.
    """

  @abc.abstractmethod
  def is_snapshot_taken(self) -> bool:
    """Returns whether it is settled what is in the one being written."""

  @abc.abstractmethod
  def remove_snapshots(self) -> None:
    """Removes all that were written, also those that are not whole."""
