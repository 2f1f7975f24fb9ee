"""Acting and learning as one compiled program (Anakin)."""

from repertory.components.rollouts.acting import Carry, Environments, begin
from repertory.components.rollouts.learner import Ended, ProgramLearner
from repertory.components.rollouts.program import Parts
from repertory.components.rollouts.road import ProgramRoad
from repertory.components.rollouts.sequences import SequenceRoad
from repertory.components.rollouts.snapshots import ProgramSnapshots
from repertory.components.rollouts.transitions import TransitionRoad
from repertory.components.rollouts.unrolls import UnrollRoad

__all__ = [
  'Carry',
  'Ended',
  'Environments',
  'Parts',
  'ProgramLearner',
  'ProgramRoad',
  'ProgramSnapshots',
  'SequenceRoad',
  'TransitionRoad',
  'UnrollRoad',
  'begin',
]
