"""Replay tables, their rate limits, and the server that holds them."""

from repertory.components.replay.checkpoints import (
  ReplayCheckpointError,
  is_snapshot_taken,
  remove_checkpoints,
  write_checkpoint,
)
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
  'ReplayCheckpointError',
  'Table',
  'TableStatus',
  'default_error_buffer',
  'is_snapshot_taken',
  'make_server',
  'prioritized',
  'queue',
  'remove_checkpoints',
  'table_status',
  'uniform',
  'write_checkpoint',
]
