"""Learner, optimizers and other parts of updates."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.learners.gradient_learner import *
  from repertory.components.learners.learner_state import *
  from repertory.components.learners.minibatches import *
  from repertory.components.learners.normalized_update import *
  from repertory.components.learners.optimizers import *
  from repertory.components.learners.scheduled_update import *
  from repertory.components.learners.update_parts import *

__all__ = [
  'ClippedAdam', 'CosineAnnealing', 'DelayedUpdate', 'Divergence',
  'DualVariable', 'GradientLearner', 'LearnerState',
  'LinearAnnealing', 'NormalizedUpdate', 'PeriodicCopy', 'RunningScale',
  'ScaledUpdate', 'ScheduledUpdate', 'SoftUpdate', 'UpdateNoise',
  'UpdateSeries', 'check_matches', 'make_values', 'name_learned',
  'restore_exported', 'save_exported', 'scale_rewards', 'select_learned',
  'set_run_length',
  'shuffled_minibatches', 'swap_leading_axes', 'take_minibatch_steps',
  'time_major', 'to_items', 'to_steps', 'undone_unless_finite',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
