"""Acting and learning as one compiled program (Anakin)."""

from repertory.components.anakin.acting import (
  Carry,
  CompiledTransport,
  begin,
)
from repertory.components.anakin.learner import (
  CompiledLearner,
  CompiledSnapshots,
  EpisodeBatch,
)
from repertory.components.anakin.replay_transport import (
  SequenceTransport,
  TransitionTransport,
)
from repertory.components.anakin.unrolls import UnrollTransport

__all__ = [
  'Carry', 'CompiledLearner', 'CompiledSnapshots', 'CompiledTransport',
  'EpisodeBatch', 'SequenceTransport', 'TransitionTransport',
  'UnrollTransport', 'begin',
]  # fmt: skip
