"""Where the rows of a run go, and what its user sees."""

from acme.utils.loggers.base import Logger

from repertory.components.loggers.csv_file import CsvFile
from repertory.components.loggers.dashboard import Dashboard
from repertory.components.loggers.dispatch import Dispatch
from repertory.components.loggers.filters import Aggregate
from repertory.components.loggers.jsonl_file import JsonlFile
from repertory.components.loggers.status import (
  InferenceStatus,
  NodeStart,
  Status,
  TableStatus,
)
from repertory.components.loggers.tensorboard import TensorBoard
from repertory.components.loggers.terminal import Terminal
from repertory.components.loggers.torn_lines import GarbledError

__all__ = (
  'Aggregate',
  'CsvFile',
  'Dashboard',
  'Dispatch',
  'GarbledError',
  'InferenceStatus',
  'JsonlFile',
  'Logger',
  'NodeStart',
  'Status',
  'TableStatus',
  'TensorBoard',
  'Terminal',
)
