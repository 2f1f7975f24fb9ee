"""Replay tables behind a server of this package, and their clients."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.replay.served.batches import *
  from repertory.components.replay.served.connection import *
  from repertory.components.replay.served.server import *
  from repertory.components.replay.served.writer import *

__all__ = [
  'ReplayServer', 'ServedBatches', 'ServedPriorities', 'ServedWriter',
  'ServerConnection',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
