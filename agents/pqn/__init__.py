"""PQN: Q-learning in parallel environments, without replay and targets."""

from typing import TYPE_CHECKING

from repertory.agents.pqn.config import PRESETS, PQNConfig
from repertory.components import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.pqn.builder import PQNBuilder

__all__ = ['PRESETS', 'PQNBuilder', 'PQNConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__, PQNBuilder='builder')
