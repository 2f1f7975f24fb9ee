"""CRR: critic-regularized regression, advantage-weighted behavior cloning."""

from typing import TYPE_CHECKING

from repertory.agents.crr.config import PRESETS, CRRConfig
from repertory.agents.interface.agent import Agent
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.crr.learning import CRRBuilder

__all__ = ['PRESETS', 'CRRBuilder', 'CRRConfig']

AGENT = Agent(
  'crr',
  'Critic-regularized regression, for offline data; bounded '
  'continuous actions.',
  CRRConfig,
  PRESETS,
  f'{__name__}.learning:CRRBuilder',
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
