"""TD3: twin delayed deterministic policy gradients, and DDPG as its options."""

from typing import TYPE_CHECKING

from repertory.agents.td3.config import PRESETS, TD3Config
from repertory.components import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.td3.builder import TD3Builder

__all__ = ['PRESETS', 'TD3Builder', 'TD3Config']

__getattr__, __dir__ = lazy_imports.modules(__name__, TD3Builder='builder')
