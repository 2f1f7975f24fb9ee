"""MPO: maximum a posteriori policy optimization, and DMPO as its option."""

from typing import TYPE_CHECKING

from repertory.agents.mpo.config import PRESETS, MPOConfig
from repertory.components import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.mpo.builder import MPOBuilder

__all__ = ['PRESETS', 'MPOBuilder', 'MPOConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__, MPOBuilder='builder')
