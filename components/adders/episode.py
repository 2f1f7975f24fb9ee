"""Adder of whole episodes."""

import dm_env
import numpy as np

from repertory.components import types
from repertory.components.adders import sequence
from repertory.components.replay import writers


class EpisodeAdder(sequence.SequenceAdder):
  """Adds whole episodes, padded to a fixed length."""

  def __init__(
    self, writer: writers.Writer, batch_size: int, *, max_length: int
  ):
    """Opens the writer.

    Args:
      writer: Writer of the episodes; its table's signature is that of sequences
        of length `max_length` + 1.
      batch_size: B, slots of the environment batch.
      max_length: Maximum number of steps per episode, at least 1.
    """
    if max_length < 1:
      raise ValueError(f'max_length must be at least 1, got {max_length}.')
    sequences = sequence.Sequences(length=max_length + 1)
    super().__init__(writer, batch_size, sequences)

  def put(
    self,
    action: types.Nest,
    next_timestep: dm_env.TimeStep,
    extras: types.Nest = (),
  ) -> None:
    lengths = self._now + 1 - self._origins
    continues = next_timestep.step_type == dm_env.StepType.MID
    if np.any(continues & (lengths >= self._length - 1)):
      raise ValueError(
        f'An episode must end within max_length = {self._length - 1} steps, '
        'got a longer one. Raise max_length, or wrap the environment in '
        '`wrappers.StepLimit`.'
      )
    super().put(action, next_timestep, extras)
