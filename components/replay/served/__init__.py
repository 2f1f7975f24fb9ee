"""Replay tables behind a server of this package, and their clients."""

from repertory.components.replay.served.batches import (
  ServedBatches,
  ServedPriorities,
)
from repertory.components.replay.served.connection import ServerConnection
from repertory.components.replay.served.server import ReplayServer
from repertory.components.replay.served.writer import ServedWriter

__all__ = [
  'ReplayServer',
  'ServedBatches',
  'ServedPriorities',
  'ServedWriter',
  'ServerConnection',
]
