"""Storage of checkpoints on shared disks or behind URLs."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.checkpoints.storage import *

__all__ = [
  'CheckpointManifest', 'CheckpointStore', 'LockLostError', 'Storage',
  'StorageFolder',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
