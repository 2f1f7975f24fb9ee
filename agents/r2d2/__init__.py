"""R2D2: recurrent, distributed, prioritized Q-learning over sequences."""

from repertory.agents.r2d2.builder import R2D2Builder
from repertory.agents.r2d2.config import PRESETS, R2D2Config

__all__ = ['PRESETS', 'R2D2Builder', 'R2D2Config']
