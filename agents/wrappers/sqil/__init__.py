"""SQIL: constant rewards for demonstrations."""

from typing import TYPE_CHECKING

from repertory.agents.wrappers.sqil.config import SQILConfig
from repertory.components import lazy_imports

if TYPE_CHECKING:
  from repertory.agents.wrappers.sqil.builder import SQILBuilder

__all__ = ['SQILBuilder', 'SQILConfig']

__getattr__, __dir__ = lazy_imports.modules(__name__, SQILBuilder='builder')
