"""Adders, which convert time steps to replay items."""

from repertory.components.adders.adder import Adder
from repertory.components.adders.episode import EpisodeAdder
from repertory.components.adders.items import Items
from repertory.components.adders.sequence import SequenceAdder, Sequences
from repertory.components.adders.transition import TransitionAdder, Transitions

__all__ = [
  'Adder',
  'EpisodeAdder',
  'Items',
  'SequenceAdder',
  'Sequences',
  'TransitionAdder',
  'Transitions',
]
