"""SQIL: constant rewards for demonstrations."""

from typing import TYPE_CHECKING

from repertory.agents.reward_models.sqil.config import SQILConfig
from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.reward_models.sqil.learning import SQILBuilder

__all__ = ['SQILBuilder', 'SQILConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__, SQILBuilder='learning')
