"""IMPALA: actor-critic with V-trace, feed-forward or recurrent."""

from typing import TYPE_CHECKING

from repertory.agents.impala.config import PRESETS, IMPALAConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.impala.learning import IMPALABuilder

__all__ = ['PRESETS', 'IMPALABuilder', 'IMPALAConfig']

DESCRIPTION = (
  'Actor-critic with V-trace, feed-forward or recurrent; '
  'discrete or continuous actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
