"""Experience transports, from actors to the learner."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.transports.in_process import InProcessTransport
  from repertory.components.transports.offline_transport import (
    Demonstrations,
    OfflineTransport,
    check_offline,
    unlimited,
  )
  from repertory.components.transports.server_transports import (
    ReverbTransport,
    ServedTransport,
  )
  from repertory.components.transports.transport import (
    COMPILED,
    IN_PROCESS,
    OFFLINE,
    REVERB,
    SERVED,
    SHARES,
    ActorState,
    ActorStates,
    LearnerSide,
    Snapshots,
    Transport,
    make_adder,
  )

__all__ = [
  'COMPILED', 'IN_PROCESS', 'OFFLINE', 'REVERB', 'SERVED', 'SHARES',
  'ActorState', 'ActorStates', 'Demonstrations', 'InProcessTransport',
  'LearnerSide', 'OfflineTransport', 'ReverbTransport', 'ServedTransport',
  'Snapshots', 'Transport', 'check_offline', 'make_adder', 'unlimited',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
