"""Runs agents, in one process or many."""

from typing import TYPE_CHECKING

from repertory.components import lazy_imports

if TYPE_CHECKING:
  from repertory.launch.experiment import Experiment, make_experiment
  from repertory.launch.failures import NodeError
  from repertory.launch.hooks import Observer, RowLogger
  from repertory.launch.running import Result, evaluate, run

__all__ = [
  'Experiment',
  'NodeError',
  'Observer',
  'Result',
  'RowLogger',
  'evaluate',
  'make_experiment',
  'run',
]

# Thin actors load no TensorFlow.
__getattr__, __dir__ = lazy_imports.modules(
  __name__,
  Experiment='experiment',
  NodeError='failures',
  Observer='hooks',
  Result='running',
  RowLogger='hooks',
  evaluate='running',
  make_experiment='experiment',
  run='running',
)
