"""BC: behavior cloning, which does in each state what the data did."""

from typing import TYPE_CHECKING

from repertory.agents.bc.config import PRESETS, BCConfig
from repertory.components import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.bc.builder import BCBuilder

__all__ = ['PRESETS', 'BCBuilder', 'BCConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__, BCBuilder='builder')
