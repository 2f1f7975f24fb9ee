"""Runs agents, in one process or many."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.launch.experiments.callbacks import Callback, RowLogger
  from repertory.launch.experiments.experiment import Experiment
  from repertory.launch.experiments.naming import make_experiment
  from repertory.launch.failures import NodeError
  from repertory.launch.opening.run import Result, run
  from repertory.launch.trained.evaluation import evaluate, record
  from repertory.launch.trained.policy import TrainedPolicy, load_policy
  from repertory.launch.trained.released import find_in_zoo

__all__ = [
  'Callback',
  'Experiment',
  'NodeError',
  'Result',
  'RowLogger',
  'TrainedPolicy',
  'evaluate',
  'find_in_zoo',
  'load_policy',
  'make_experiment',
  'record',
  'run',
]

# Thin actors load no TensorFlow.
__getattr__, __dir__ = lazy_imports.modules(__name__)
