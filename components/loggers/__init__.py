"""Loggers and the dashboard of a run."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from acme.utils.loggers.base import Logger

  from repertory.components.loggers.filters import *
  from repertory.components.loggers.live_display import *
  from repertory.components.loggers.row_files import *
  from repertory.components.loggers.status import *
  from repertory.components.loggers.tensorboard import *
  from repertory.components.loggers.torn_lines import *

__all__ = [
  'Aggregate', 'CsvFile', 'Dashboard', 'GarbledError', 'JsonlFile', 'Logger',
  'NodeStart', 'Status', 'TableStatus', 'TensorBoard',
]  # fmt: skip

# Acme imports Launchpad; code that reads logs needs neither.
__getattr__, __dir__ = lazy_imports.modules(__name__)
