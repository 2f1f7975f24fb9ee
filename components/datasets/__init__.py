"""Batches for learners."""

from repertory.components.datasets.batches import (
  Batches,
  BatchTimeout,
  describe_wait,
  sample_spec,
)
from repertory.components.datasets.local_batches import LocalBatches
from repertory.components.datasets.replay_dataset import ReplayDataset

__all__ = [
  'BatchTimeout',
  'Batches',
  'LocalBatches',
  'ReplayDataset',
  'describe_wait',
  'sample_spec',
]
