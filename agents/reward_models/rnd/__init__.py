"""RND: intrinsic rewards of random network distillation."""

from typing import TYPE_CHECKING

from repertory.agents.reward_models.rnd.config import RNDConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.reward_models.rnd.learning import RNDBuilder

__all__ = ['RNDBuilder', 'RNDConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__, RNDBuilder='learning')
