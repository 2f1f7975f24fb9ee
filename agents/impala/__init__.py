"""IMPALA: actor-critic with V-trace, feed-forward or recurrent."""

from typing import TYPE_CHECKING

from repertory.agents.impala.config import PRESETS, IMPALAConfig
from repertory.agents.interface.agent import Agent
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.impala.builder import IMPALABuilder

__all__ = ['PRESETS', 'IMPALABuilder', 'IMPALAConfig']

AGENT = Agent(
  name='impala',
  description='Actor-critic with V-trace, feed-forward or recurrent; '
  'discrete or continuous actions.',
  config_class=IMPALAConfig,
  presets=PRESETS,
  builder='repertory.agents.impala.builder:IMPALABuilder',
)

__getattr__, __dir__ = lazy_imports.modules(__name__, IMPALABuilder='builder')
