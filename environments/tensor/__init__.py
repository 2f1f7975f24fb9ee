"""Environments in TensorFlow, for compiled loops and for the host."""

import importlib
from typing import TYPE_CHECKING, Any

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

_MODULES = {
  'Advance': 'environment',
  'Factory': 'factory',
  'TensorPreviousActionAndReward': 'previous_action',
  'State': 'environment',
  'TensorEnvironment': 'environment',
  'initial_counters': 'environment',
}


def __getattr__(name: str) -> Any:
  """Imports attributes lazily: the module itself needs no TensorFlow."""
  if name not in _MODULES:
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
  module = importlib.import_module(f'{__name__}.{_MODULES[name]}')
  return getattr(module, name)
