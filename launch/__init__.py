"""Runs agents, in one process or many."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from repertory.launch.experiment import Experiment, make_experiment
  from repertory.launch.failures import NodeError
  from repertory.launch.running import Result, evaluate, run

__all__ = [
  'Experiment',
  'NodeError',
  'Result',
  'evaluate',
  'make_experiment',
  'run',
]

_MODULES = {
  'Experiment': 'experiment',
  'NodeError': 'failures',
  'Result': 'running',
  'evaluate': 'running',
  'make_experiment': 'experiment',
  'run': 'running',
}


def __getattr__(name: str) -> Any:
  """Imports what is asked for: thin actors load no TensorFlow."""
  if name not in _MODULES:
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
  module = importlib.import_module(f'{__name__}.{_MODULES[name]}')
  return getattr(module, name)
