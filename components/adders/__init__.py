"""Adders, which convert time steps to replay items."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.adders.adder import Adder, ItemSpec
  from repertory.components.adders.hindsight import (
    HindsightAdder,
    HindsightTransitions,
  )
  from repertory.components.adders.sequence import SequenceAdder, Sequences
  from repertory.components.adders.transition import (
    TransitionAdder,
    Transitions,
  )

__all__ = [
  'Adder',
  'HindsightAdder',
  'HindsightTransitions',
  'ItemSpec',
  'SequenceAdder',
  'Sequences',
  'TransitionAdder',
  'Transitions',
]

__getattr__, __dir__ = lazy_imports.modules(__name__)
