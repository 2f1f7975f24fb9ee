"""Replay tables, their rate limits, their writers, and the server."""

from repertory.components.replay.checkpoints import (
  ReplayCheckpointError,
  is_snapshot_taken,
  remove_checkpoints,
  write_checkpoint,
)
from repertory.components.replay.connection import Connection
from repertory.components.replay.packing import Packing
from repertory.components.replay.priorities import Priorities, PriorityUpdater
from repertory.components.replay.rate_limiters import (
  UNLIMITED,
  NamesOf,
  RateLimit,
  default_error_buffer,
)
from repertory.components.replay.replay_ratio import ReplayRatio
from repertory.components.replay.reverb_writers import ReverbWriter
from repertory.components.replay.server import (
  TableInfo,
  make_server,
  table_status,
)
from repertory.components.replay.tables import (
  DEFAULT_TABLE,
  TRAIN_BUFFER,
  TableSpec,
  prioritized,
  queue,
  uniform,
)
from repertory.components.replay.waits import DeadlockError
from repertory.components.replay.writers import Writer

__all__ = [
  'DEFAULT_TABLE',
  'TRAIN_BUFFER',
  'UNLIMITED',
  'Connection',
  'DeadlockError',
  'NamesOf',
  'Packing',
  'Priorities',
  'PriorityUpdater',
  'RateLimit',
  'ReplayCheckpointError',
  'ReplayRatio',
  'ReverbWriter',
  'TableInfo',
  'TableSpec',
  'Writer',
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
