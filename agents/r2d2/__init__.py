"""R2D2: recurrent, distributed, prioritized Q-learning over sequences."""

from typing import TYPE_CHECKING

from repertory.agents.r2d2.config import PRESETS, R2D2Config
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.r2d2.learning import R2D2Builder

__all__ = ['PRESETS', 'R2D2Builder', 'R2D2Config']

DESCRIPTION = (
  'Recurrent, n-step double Q-learning over prioritized '
  'sequences with burn-in; discrete actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
