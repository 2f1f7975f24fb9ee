"""CRR: critic-regularized regression, advantage-weighted behavior cloning."""

from typing import TYPE_CHECKING

from repertory.agents.crr.config import PRESETS, CRRConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.crr.learning import CRRBuilder

__all__ = ['PRESETS', 'CRRBuilder', 'CRRConfig']

DESCRIPTION = (
  'Critic-regularized regression, for offline data; bounded continuous actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
