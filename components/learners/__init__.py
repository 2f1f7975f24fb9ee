"""From batches to better variables."""

from repertory.components.learners.clipped_adam import ClippedAdam
from repertory.components.learners.gradient_learner import (
  GradientLearner,
  restore_exported,
)
from repertory.components.learners.target_update import PeriodicCopy
from repertory.components.learners.time_major import time_major

__all__ = [
  'ClippedAdam',
  'GradientLearner',
  'PeriodicCopy',
  'restore_exported',
  'time_major',
]
