"""QT-Opt: Q-learning of continuous actions by the cross-entropy method."""

from typing import TYPE_CHECKING

from repertory.agents.qtopt.config import PRESETS, QTOptConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.qtopt.learning import QTOptBuilder

__all__ = ['PRESETS', 'QTOptBuilder', 'QTOptConfig']

DESCRIPTION = (
  'Q-learning with the cross-entropy method (QT-Opt); bounded '
  'continuous actions.'
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
