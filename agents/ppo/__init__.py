"""PPO: proximal policy optimization, feed-forward or recurrent."""

from typing import TYPE_CHECKING

from repertory.agents.ppo.config import PRESETS, PPOConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.ppo.learning import PPOBuilder

__all__ = ['PRESETS', 'PPOBuilder', 'PPOConfig']

DESCRIPTION = (
  'Proximal policy optimization, feed-forward or recurrent; '
  'discrete or continuous actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
