"""BC: behavior cloning."""

from typing import TYPE_CHECKING

from repertory.agents.bc.config import PRESETS, BCConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.bc.learning import BCBuilder

__all__ = ['PRESETS', 'BCBuilder', 'BCConfig']

DESCRIPTION = (
  'Behavior cloning, offline; discrete or bounded continuous actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
