"""Storage of checkpoints on shared disks or behind URLs."""

from repertory.components.storage.owner import OwnerLostError
from repertory.components.storage.places import LocalPlace, Place
from repertory.components.storage.shelf import Manifest, Shelf
from repertory.components.storage.storage import Storage, open_storage

__all__ = (
  'LocalPlace',
  'Manifest',
  'OwnerLostError',
  'Place',
  'Shelf',
  'Storage',
  'open_storage',
)
