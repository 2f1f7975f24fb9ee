"""TD3: twin delayed deterministic policy gradient, with DDPG as a preset."""

from typing import TYPE_CHECKING

from repertory.agents.td3.config import PRESETS, TD3Config
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.td3.learning import TD3Builder

__all__ = ['PRESETS', 'TD3Builder', 'TD3Config']

DESCRIPTION = (
  'Twin delayed deterministic policy gradient, with DDPG as a '
  'preset; bounded continuous actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
