"""From timesteps to replay items."""

from repertory.components.adders.reverb_adder import Destination
from repertory.components.adders.sequence import (
  EpisodeAdder,
  SequenceAdder,
  max_sequences,
)
from repertory.components.adders.transition import TransitionAdder

__all__ = [
  'Destination',
  'EpisodeAdder',
  'SequenceAdder',
  'TransitionAdder',
  'max_sequences',
]
