"""Experience transports, from actors to the learner."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.transports.in_process import *
  from repertory.components.transports.offline_transport import *
  from repertory.components.transports.server_transports import *
  from repertory.components.transports.transport import *

__all__ = [
  'COMPILED', 'IN_PROCESS', 'OFFLINE', 'REVERB', 'SERVED', 'SHARES',
  'ActorState', 'ActorStates', 'Demonstrations', 'InProcessTransport',
  'LearnerSide', 'OfflineTransport', 'ReverbTransport', 'ServedTransport',
  'Snapshots', 'Transport', 'check_offline', 'make_adder', 'unlimited',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
