"""SAC: soft actor-critic."""

from typing import TYPE_CHECKING

from repertory.agents.interface.agent import Agent
from repertory.agents.sac.config import PRESETS, SACConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.sac.learning import SACBuilder

__all__ = ['PRESETS', 'SACBuilder', 'SACConfig']

AGENT = Agent(
  'sac',
  'Soft actor-critic with a learned temperature; bounded '
  'continuous or discrete actions.',
  SACConfig,
  PRESETS,
  f'{__name__}.learning:SACBuilder',
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
