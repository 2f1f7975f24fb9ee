"""IQL: implicit Q-learning, which never asks for what data do not have."""

from typing import TYPE_CHECKING

from repertory.agents.iql.config import PRESETS, IQLConfig
from repertory.components import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.iql.builder import IQLBuilder

__all__ = ['PRESETS', 'IQLBuilder', 'IQLConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__, IQLBuilder='builder')
