"""MPO: maximum a posteriori policy optimization, with DMPO as an option."""

from typing import TYPE_CHECKING

from repertory.agents.mpo.config import PRESETS, MPOConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.mpo.learning import MPOBuilder

__all__ = ['PRESETS', 'MPOBuilder', 'MPOConfig']

DESCRIPTION = (
  'Maximum a posteriori policy optimization, with DMPO as an '
  'option; bounded continuous or discrete actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
