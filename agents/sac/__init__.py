"""SAC: soft actor-critic."""

from typing import TYPE_CHECKING

from repertory.agents.sac.config import PRESETS, SACConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.sac.learning import SACBuilder

__all__ = ['PRESETS', 'SACBuilder', 'SACConfig']

DESCRIPTION = (
  'Soft actor-critic with a learned temperature; bounded '
  'continuous or discrete actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
