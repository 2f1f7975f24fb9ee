"""Interface of checkpointed experience."""

import abc
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
