"""Replay tables, their rate limits, writers and batches, and the server."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.replay.batches import *
  from repertory.components.replay.packing import *
  from repertory.components.replay.rate_limiters import *
  from repertory.components.replay.replay_ratio import *
  from repertory.components.replay.reverb.client import *
  from repertory.components.replay.reverb.dataset import *
  from repertory.components.replay.reverb.server import *
  from repertory.components.replay.reverb.writer import *
  from repertory.components.replay.tables import *
  from repertory.components.replay.waits import *
  from repertory.components.replay.writers import *

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
