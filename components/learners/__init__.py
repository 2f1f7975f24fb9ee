"""Learner, optimizers, target updates and other parts of updates."""

from repertory.components.learners.annealing import (
  CosineAnnealing,
  LinearAnnealing,
)
from repertory.components.learners.clipped_adam import ClippedAdam
from repertory.components.learners.delayed_update import DelayedUpdate
from repertory.components.learners.divergence import (
  Divergence,
  undone_unless_finite,
)
from repertory.components.learners.dual_variable import DualVariable, KLBound
from repertory.components.learners.gradient_learner import GradientLearner
from repertory.components.learners.learner_state import (
  LearnerState,
  check_matches,
  name_learned,
  restore_exported,
  save_exported,
  select_learned,
)
from repertory.components.learners.minibatches import (
  shuffled_minibatches,
  take_minibatch_steps,
  to_items,
  to_steps,
)
from repertory.components.learners.running_scale import RunningScale
from repertory.components.learners.target_update import (
  PeriodicCopy,
  SoftUpdate,
)
from repertory.components.learners.time_major import (
  swap_leading_axes,
  time_major,
)
from repertory.components.learners.update_noise import UpdateNoise
from repertory.components.learners.update_series import UpdateSeries

__all__ = [
  'ClippedAdam',
  'CosineAnnealing',
  'DelayedUpdate',
  'Divergence',
  'DualVariable',
  'GradientLearner',
  'KLBound',
  'LearnerState',
  'LinearAnnealing',
  'PeriodicCopy',
  'RunningScale',
  'SoftUpdate',
  'UpdateNoise',
  'UpdateSeries',
  'check_matches',
  'name_learned',
  'restore_exported',
  'save_exported',
  'select_learned',
  'shuffled_minibatches',
  'swap_leading_axes',
  'take_minibatch_steps',
  'time_major',
  'to_items',
  'to_steps',
  'undone_unless_finite',
]
