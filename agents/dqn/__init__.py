"""DQN with the extensions of Rainbow and others as options."""

from typing import TYPE_CHECKING

from repertory.agents.dqn.config import PRESETS, DQNConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.dqn.learning import DQNBuilder

__all__ = ['PRESETS', 'DQNBuilder', 'DQNConfig']

DESCRIPTION = (
  'Double, dueling, n-step DQN with prioritized replay; '
  'discrete actions, vector and image observations.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
