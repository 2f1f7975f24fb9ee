"""Replay tables behind a server of this package, and their clients."""

from repertory.components.replay.served.batches import (
  ServedBatches,
  ServedPriorities,
)
from repertory.components.replay.served.connection import (
  ReplaySnapshotError,
  ServerConnection,
)
from repertory.components.replay.served.server import ReplayServer
from repertory.components.replay.served.writer import ServedWriter

__all__ = [
  'ReplayServer',
  'ReplaySnapshotError',
  'ServedBatches',
  'ServedPriorities',
  'ServedWriter',
  'ServerConnection',
]
