"""Storage of checkpoints on shared disks or behind URLs."""

from repertory.components.checkpoints.checkpoint_store import (
  CheckpointManifest,
  CheckpointStore,
  Storage,
  open_storage,
)
from repertory.components.checkpoints.storage_folder import StorageFolder
from repertory.components.checkpoints.storage_lock import LockLostError

__all__ = (
  'CheckpointManifest',
  'CheckpointStore',
  'LockLostError',
  'Storage',
  'StorageFolder',
  'open_storage',
)
