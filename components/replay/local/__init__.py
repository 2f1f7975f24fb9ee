"""Replay tables in this process, without a server."""

from repertory.components.replay.local.columns import copied_bytes, item_bytes
from repertory.components.replay.local.priorities import LocalPriorities
from repertory.components.replay.local.snapshots import read, reading, write
from repertory.components.replay.local.table import (
  Contents,
  Table,
  check,
)
from repertory.components.replay.local.wait_policy import WaitPolicy
from repertory.components.replay.local.writer import LocalWriter

__all__ = [
  'Contents',
  'LocalPriorities',
  'LocalWriter',
  'Table',
  'WaitPolicy',
  'check',
  'copied_bytes',
  'item_bytes',
  'read',
  'reading',
  'write',
]
