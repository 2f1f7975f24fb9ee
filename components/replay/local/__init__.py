"""Replay tables in this process, without a server."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.replay.local.snapshots import *
  from repertory.components.replay.local.table import *
  from repertory.components.replay.local.writer import *
  from repertory.components.replay.waits import *

__all__ = [
  'Contents', 'LocalBatches', 'LocalPriorities', 'LocalWriter', 'Table',
  'WaitPolicy', 'read', 'reading', 'write',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
