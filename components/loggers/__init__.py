"""Loggers and the dashboard of a run."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from acme.utils.loggers.base import Logger

  from repertory.components.loggers.filters import Aggregate
  from repertory.components.loggers.live_display import Dashboard
  from repertory.components.loggers.row_files import CsvFile, JsonlFile
  from repertory.components.loggers.status import (
    NodeStart,
    Status,
    TableStatus,
  )
  from repertory.components.loggers.tensorboard import TensorBoard
  from repertory.components.loggers.torn_lines import GarbledError

__all__ = (
  'Aggregate',
  'CsvFile',
  'Dashboard',
  'GarbledError',
  'JsonlFile',
  'Logger',
  'NodeStart',
  'Status',
  'TableStatus',
  'TensorBoard',
)

# Acme imports Launchpad; code that reads logs needs neither.
__getattr__, __dir__ = lazy_imports.modules(__name__)
