"""Losses: pure functions of tensors, a topic to a file."""

from repertory.components.losses.masking import masked_mean
from repertory.components.losses.policy_gradient import (
  entropy_loss,
  policy_gradient_loss,
  value_loss,
)
from repertory.components.losses.q_learning import (
  double_q_errors,
  huber,
  importance_weights,
)
from repertory.components.losses.recurrence import backward_sums
from repertory.components.losses.sequence_q_learning import (
  n_step_returns,
  sequence_double_q_errors,
  sequence_priorities,
)
from repertory.components.losses.value_transforms import rescale, undo_rescale
from repertory.components.losses.vtrace import VTrace, vtrace

__all__ = [
  'VTrace',
  'backward_sums',
  'double_q_errors',
  'entropy_loss',
  'huber',
  'importance_weights',
  'masked_mean',
  'n_step_returns',
  'policy_gradient_loss',
  'rescale',
  'sequence_double_q_errors',
  'sequence_priorities',
  'undo_rescale',
  'value_loss',
  'vtrace',
]
