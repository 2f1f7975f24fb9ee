"""D4PG: deterministic policy gradients with a distributional critic."""

from repertory.agents.d4pg.builder import D4PGBuilder
from repertory.agents.d4pg.config import PRESETS, D4PGConfig

__all__ = ['PRESETS', 'D4PGBuilder', 'D4PGConfig']
