"""Acting and learning as one compiled program (Anakin)."""

from repertory.components.anakin.acting import Carry, begin
from repertory.components.anakin.compiled_transport import CompiledTransport
from repertory.components.anakin.learner import (
  CompiledLearner,
  CompiledSnapshots,
  EpisodeBatch,
)
from repertory.components.anakin.sequences import SequenceTransport
from repertory.components.anakin.transitions import TransitionTransport
from repertory.components.anakin.unrolls import UnrollTransport

__all__ = [
  'Carry', 'CompiledLearner', 'CompiledSnapshots', 'CompiledTransport',
  'EpisodeBatch', 'SequenceTransport', 'TransitionTransport',
  'UnrollTransport', 'begin',
]  # fmt: skip
