"""Batches for learners."""

from repertory.components.datasets.replay_dataset import ReplayDataset, Starved

__all__ = ['ReplayDataset', 'Starved']
