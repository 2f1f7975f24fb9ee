"""IQL: implicit Q-learning, offline and without out-of-distribution actions."""

from typing import TYPE_CHECKING

from repertory.agents.iql.config import PRESETS, IQLConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.iql.learning import IQLBuilder

__all__ = ['PRESETS', 'IQLBuilder', 'IQLConfig']

DESCRIPTION = (
  'Implicit Q-learning, for offline data; bounded continuous actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
