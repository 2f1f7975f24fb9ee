"""Runs agents, in one process or many."""

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
