"""BC: behavior cloning, which does in each state what the data did."""

from typing import TYPE_CHECKING

from repertory.agents.agent import Agent
from repertory.agents.bc.config import PRESETS, BCConfig
from repertory.components import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.bc.builder import BCBuilder

__all__ = ['PRESETS', 'BCBuilder', 'BCConfig']

AGENT = Agent(
  name='bc',
  description='Behavior cloning, from data alone; discrete actions, or '
  'continuous ones within bounds.',
  config_class=BCConfig,
  presets=PRESETS,
  builder='repertory.agents.bc.builder:BCBuilder',
)

__getattr__, __dir__ = lazy_imports.modules(__name__, BCBuilder='builder')
