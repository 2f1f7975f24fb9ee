"""DQN with the extensions of Rainbow and others as options."""

from typing import TYPE_CHECKING

from repertory.agents.dqn.config import PRESETS, DQNConfig
from repertory.agents.interface.agent import Agent
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.dqn.learning import DQNBuilder

__all__ = ['PRESETS', 'DQNBuilder', 'DQNConfig']

AGENT = Agent(
  'dqn',
  'Double, dueling, n-step DQN with prioritized replay; '
  'discrete actions, vector and image observations.',
  DQNConfig,
  PRESETS,
  f'{__name__}.learning:DQNBuilder',
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
