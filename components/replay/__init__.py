"""Replay tables, their rate limits, writers and batches, and the server."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.replay.batches import (
    Batches,
    BatchTimeout,
    Priorities,
    sample_spec,
  )
  from repertory.components.replay.packing import Packing
  from repertory.components.replay.rate_limiters import (
    UNLIMITED,
    NamesOf,
    RateLimit,
  )
  from repertory.components.replay.replay_ratio import ReplayRatio
  from repertory.components.replay.reverb.client import (
    Connection,
    PriorityUpdater,
    is_snapshot_taken,
    table_status,
    write_checkpoint,
  )
  from repertory.components.replay.reverb.dataset import ReplayDataset
  from repertory.components.replay.reverb.server import make_server
  from repertory.components.replay.reverb.writer import ReverbWriter
  from repertory.components.replay.tables import (
    DEFAULT_TABLE,
    TRAIN_BUFFER,
    TableInfo,
    TableSpec,
    prioritized,
    queue,
    remove_checkpoints,
    uniform,
  )
  from repertory.components.replay.waits import (
    DeadlockError,
    ReplayCheckpointError,
  )
  from repertory.components.replay.writers import Writer

__all__ = [
  'DEFAULT_TABLE', 'TRAIN_BUFFER', 'UNLIMITED', 'BatchTimeout', 'Batches',
  'Connection', 'DeadlockError', 'NamesOf', 'Packing', 'Priorities',
  'PriorityUpdater', 'RateLimit', 'ReplayCheckpointError', 'ReplayDataset',
  'ReplayRatio', 'ReverbWriter', 'TableInfo', 'TableSpec', 'Writer',
  'is_snapshot_taken', 'make_server', 'prioritized', 'queue',
  'remove_checkpoints', 'sample_spec', 'table_status', 'uniform',
  'write_checkpoint',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
