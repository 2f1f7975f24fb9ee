"""Losses: pure functions of tensors, a topic to a file."""

from repertory.components.losses.q_learning import (
  double_q_errors,
  huber,
  importance_weights,
)

__all__ = ['double_q_errors', 'huber', 'importance_weights']
