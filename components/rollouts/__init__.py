"""Acting and learning as one compiled program."""

from repertory.components.rollouts.acting import Carry, Environments, begin
from repertory.components.rollouts.learner import ProgramLearner
from repertory.components.rollouts.road import ProgramRoad
from repertory.components.rollouts.unrolls import UnrollRoad

__all__ = [
  'Carry',
  'Environments',
  'ProgramLearner',
  'ProgramRoad',
  'UnrollRoad',
  'begin',
]
