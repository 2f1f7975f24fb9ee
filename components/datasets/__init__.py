"""Batches for learners."""

from repertory.components.datasets.replay_dataset import ReplayDataset

__all__ = ['ReplayDataset']
