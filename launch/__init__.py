"""Runs agents, in one process or many."""

from typing import TYPE_CHECKING

from repertory.components import lazy_imports

if TYPE_CHECKING:
  from repertory.launch.callbacks import Callback, RowLogger
  from repertory.launch.evaluation import evaluate
  from repertory.launch.experiment import Experiment
  from repertory.launch.failures import NodeError
  from repertory.launch.naming import make_experiment
  from repertory.launch.recording import record
  from repertory.launch.running import Result, run
  from repertory.launch.trained.policy import TrainedPolicy, load_policy

__all__ = [
  'Callback',
  'Experiment',
  'NodeError',
  'Result',
  'RowLogger',
  'TrainedPolicy',
  'evaluate',
  'load_policy',
  'make_experiment',
  'record',
  'run',
]

# Thin actors load no TensorFlow.
__getattr__, __dir__ = lazy_imports.modules(
  __name__,
  Experiment='experiment',
  NodeError='failures',
  Callback='callbacks',
  Result='running',
  RowLogger='callbacks',
  TrainedPolicy='trained.policy',
  evaluate='evaluation',
  load_policy='trained.policy',
  make_experiment='naming',
  record='recording',
  run='running',
)
