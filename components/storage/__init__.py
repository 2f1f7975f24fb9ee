"""Storage of checkpoints on shared disks or behind URLs."""

from repertory.components.storage.backends import LocalBackend, StorageBackend
from repertory.components.storage.checkpoint_store import (
  CheckpointManifest,
  CheckpointStore,
)
from repertory.components.storage.storage import Storage, open_storage
from repertory.components.storage.storage_lock import LockLostError

__all__ = (
  'CheckpointManifest',
  'CheckpointStore',
  'LocalBackend',
  'LockLostError',
  'Storage',
  'StorageBackend',
  'open_storage',
)
