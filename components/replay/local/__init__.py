"""Replay tables in this process, without a server."""

from repertory.components.replay.local.snapshots import read, reading, write
from repertory.components.replay.local.table import (
  Contents,
  LocalBatches,
  LocalPriorities,
  Table,
)
from repertory.components.replay.local.writer import LocalWriter
from repertory.components.replay.waits import WaitPolicy

__all__ = [
  'Contents',
  'LocalBatches',
  'LocalPriorities',
  'LocalWriter',
  'Table',
  'WaitPolicy',
  'read',
  'reading',
  'write',
]
