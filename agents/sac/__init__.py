"""SAC: soft actor-critic, for continuous actions within bounds."""

from repertory.agents.sac.builder import SACBuilder
from repertory.agents.sac.config import PRESETS, SACConfig

__all__ = ['PRESETS', 'SACBuilder', 'SACConfig']
