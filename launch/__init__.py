"""Runs agents, in one process or many."""

from repertory.launch.experiment import Experiment
from repertory.launch.experiment import make_experiment
from repertory.launch.running import Result
from repertory.launch.running import evaluate
from repertory.launch.running import run
from repertory.launch.supervision import NodeError

__all__ = [
  'Experiment',
  'NodeError',
  'Result',
  'evaluate',
  'make_experiment',
  'run',
]
