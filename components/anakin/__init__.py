"""Acting and learning as one compiled program (Anakin)."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.anakin.acting import *
  from repertory.components.anakin.learner import *
  from repertory.components.anakin.replay_transport import *
  from repertory.components.anakin.unrolls import *

__all__ = [
  'Carry', 'CompiledLearner', 'CompiledSnapshots', 'CompiledTransport',
  'EpisodeBatch', 'SequenceTransport', 'TransitionTransport',
  'UnrollTransport', 'begin',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
