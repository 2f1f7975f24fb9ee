"""Batches for learners."""

from repertory.components.datasets.batches import (
  Batches,
  Starved,
  describe_wait,
  sample_spec,
)
from repertory.components.datasets.local_batches import LocalBatches
from repertory.components.datasets.replay_dataset import ReplayDataset

__all__ = [
  'Batches',
  'LocalBatches',
  'ReplayDataset',
  'Starved',
  'describe_wait',
  'sample_spec',
]
