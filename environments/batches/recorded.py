"""Recording of the experience of an environment batch."""

from typing import Any

import dm_env

from repertory.environments.batches import vector_batch
from repertory.environments.batches.layout import Nest


class RecordedEnvironments(vector_batch.BatchWrapper):
  """Environment batch that writes its episodes to files.

  Closing a wrapper of the batch closes it, too, and writes the remaining steps.
  """

  def __init__(self, environments: Any, writer: Any):
    """Takes ownership of the batch and of an `offline.RecordingWriter`."""
    super().__init__(environments)
    self._writer = writer

  def reset(self) -> dm_env.TimeStep:
    timestep = self.batch.reset()
    self._writer.begin(timestep)
    return timestep

  def step(self, actions: Nest) -> dm_env.TimeStep:
    """Steps every slot, or resets it.

    Raises:
      OSError: If the step cannot be written.
    """
    timestep = self.batch.step(actions)
    self._writer.add(actions, timestep)
    return timestep

  def write_recording(self) -> None:
    """Writes the remaining steps; the batch remains usable.

    Raises:
      RecordingError: If a file cannot be written.
    """
    self._writer.close()

  def close(self) -> None:
    """Writes the remaining steps; closes the batch even if writing fails."""
    try:
      self._writer.close()
    finally:
      self.batch.close()
