"""Runs agents, in one process or many."""

from repertory.launch.experiment import Experiment, make_experiment
from repertory.launch.running import Result, evaluate, run
from repertory.launch.supervision import NodeError

__all__ = [
  'Experiment',
  'NodeError',
  'Result',
  'evaluate',
  'make_experiment',
  'run',
]
