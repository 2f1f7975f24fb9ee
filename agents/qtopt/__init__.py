"""QT-Opt: Q-learning of continuous actions, maximized by trying some."""

from typing import TYPE_CHECKING

from repertory.agents.qtopt.config import PRESETS, QTOptConfig
from repertory.components import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.qtopt.builder import QTOptBuilder

__all__ = ['PRESETS', 'QTOptBuilder', 'QTOptConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__, QTOptBuilder='builder')
