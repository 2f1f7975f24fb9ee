"""IMPALA: actor-critic with V-trace, feed-forward or recurrent."""

from repertory.agents.impala.builder import IMPALABuilder
from repertory.agents.impala.config import PRESETS, IMPALAConfig

__all__ = ['PRESETS', 'IMPALABuilder', 'IMPALAConfig']
