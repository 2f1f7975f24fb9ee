"""V-MPO: on-policy maximum a posteriori policy optimization."""

from typing import TYPE_CHECKING

from repertory.agents.interface.agent import Agent
from repertory.agents.vmpo.config import PRESETS, VMPOConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.vmpo.learning import VMPOBuilder

__all__ = ['PRESETS', 'VMPOBuilder', 'VMPOConfig']

AGENT = Agent(
  'vmpo',
  'On-policy maximum a posteriori policy optimization, '
  'feed-forward or recurrent; discrete or continuous actions.',
  VMPOConfig,
  PRESETS,
  f'{__name__}.learning:VMPOBuilder',
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
