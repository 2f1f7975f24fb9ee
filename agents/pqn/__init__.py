"""PQN: parallelized Q-network, without replay and target networks."""

from typing import TYPE_CHECKING

from repertory.agents.pqn.config import PRESETS, PQNConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.pqn.learning import PQNBuilder

__all__ = ['PRESETS', 'PQNBuilder', 'PQNConfig']

DESCRIPTION = (
  'Q-learning in parallel environments with layer normalization, '
  'without replay, feed-forward or recurrent; discrete actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
