"""Variable clients, which update actors with the learner's variables."""

from repertory.components.variables.copying_client import CopyingVariableClient
from repertory.components.variables.local_client import (
  LocalVariableClient,
  Publisher,
)
from repertory.components.variables.remote_client import RemoteVariableClient
from repertory.components.variables.scheduled_client import (
  ScheduledVariableClient,
)
from repertory.components.variables.shared_client import (
  SharedVariableClient,
  Versioned,
)
from repertory.components.variables.variable_client import VariableClient

__all__ = [
  'CopyingVariableClient',
  'LocalVariableClient',
  'Publisher',
  'RemoteVariableClient',
  'ScheduledVariableClient',
  'SharedVariableClient',
  'VariableClient',
  'Versioned',
]
