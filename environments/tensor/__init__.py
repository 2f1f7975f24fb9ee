"""Environments in TensorFlow, for compiled loops and for the host."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.environments.tensor.environment import (
    Advance,
    State,
    TensorEnvironment,
    initial_counters,
  )
  from repertory.environments.tensor.factory import Factory
  from repertory.environments.tensor.previous_action import (
    TensorPreviousActionAndReward,
  )

__all__ = [
  'Advance',
  'Factory',
  'State',
  'TensorEnvironment',
  'TensorPreviousActionAndReward',
  'initial_counters',
]

__getattr__, __dir__ = lazy_imports.modules(__name__)
