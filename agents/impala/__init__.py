"""IMPALA: actor-critic with V-trace, feed-forward or recurrent."""

from typing import TYPE_CHECKING

from repertory.agents.impala.config import PRESETS, IMPALAConfig
from repertory.agents.interface.agent import Agent
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.impala.learning import IMPALABuilder

__all__ = ['PRESETS', 'IMPALABuilder', 'IMPALAConfig']

AGENT = Agent(
  'impala',
  'Actor-critic with V-trace, feed-forward or recurrent; '
  'discrete or continuous actions.',
  IMPALAConfig,
  PRESETS,
  f'{__name__}.learning:IMPALABuilder',
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
