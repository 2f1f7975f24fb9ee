"""Storage of checkpoints on shared disks or behind URLs."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.checkpoints.checkpoint_store import (
    CheckpointManifest,
    CheckpointStore,
    Storage,
  )
  from repertory.components.checkpoints.storage_folder import StorageFolder
  from repertory.components.checkpoints.storage_lock import LockLostError

__all__ = (
  'CheckpointManifest',
  'CheckpointStore',
  'LockLostError',
  'Storage',
  'StorageFolder',
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
