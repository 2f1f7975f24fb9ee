"""Adders, which convert time steps to replay items."""

from repertory.components.adders.adder import Adder, ItemSpec
from repertory.components.adders.sequence import SequenceAdder, Sequences
from repertory.components.adders.transition import TransitionAdder, Transitions

__all__ = [
  'Adder',
  'ItemSpec',
  'SequenceAdder',
  'Sequences',
  'TransitionAdder',
  'Transitions',
]
