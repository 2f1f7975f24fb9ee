"""GAIL and DAC: rewards of a discriminator for imitation."""

from typing import TYPE_CHECKING

from repertory.agents.reward_models.gail.config import GAILConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.reward_models.gail.learning import GAILBuilder

__all__ = ['GAILBuilder', 'GAILConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__, GAILBuilder='learning')
