"""D4PG: deterministic policy gradients with a distributional critic."""

from typing import TYPE_CHECKING

from repertory.agents.d4pg.config import PRESETS, D4PGConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.d4pg.learning import D4PGBuilder

__all__ = ['PRESETS', 'D4PGBuilder', 'D4PGConfig']

DESCRIPTION = (
  'Deterministic policy gradients with a distributional critic; '
  'bounded continuous actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
