"""Replay tables, their rate limits, and the server that holds them."""

from repertory.components.replay.connection import Connection
from repertory.components.replay.packing import Packing
from repertory.components.replay.priorities import PriorityUpdater
from repertory.components.replay.rate_limiters import (
  RateLimit,
  default_error_buffer,
)
from repertory.components.replay.server import (
  TableStatus,
  make_server,
  table_status,
  write_checkpoint,
)
from repertory.components.replay.tables import (
  DEFAULT_TABLE,
  Table,
  prioritized,
  queue,
  uniform,
)

__all__ = [
  'DEFAULT_TABLE',
  'Connection',
  'Packing',
  'PriorityUpdater',
  'RateLimit',
  'Table',
  'TableStatus',
  'default_error_buffer',
  'make_server',
  'prioritized',
  'queue',
  'table_status',
  'uniform',
  'write_checkpoint',
]
