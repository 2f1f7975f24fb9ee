"""Adders, which convert time steps to replay items."""

from repertory.components.adders.adder import Adder
from repertory.components.adders.episode import EpisodeAdder
from repertory.components.adders.item_spec import ItemSpec
from repertory.components.adders.sequence import SequenceAdder, Sequences
from repertory.components.adders.transition import TransitionAdder, Transitions

__all__ = [
  'Adder',
  'EpisodeAdder',
  'ItemSpec',
  'SequenceAdder',
  'Sequences',
  'TransitionAdder',
  'Transitions',
]
