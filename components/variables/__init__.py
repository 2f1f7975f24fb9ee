"""Variable clients, which keep an actor's variables up to date."""

from repertory.components.variables.local_client import (
  CopyingVariableClient,
  LocalVariableClient,
  Publisher,
  ScheduledVariableClient,
)
from repertory.components.variables.remote_client import RemoteVariableClient
from repertory.components.variables.variable_client import (
  SharedVariableClient,
  VariableClient,
)

__all__ = [
  'CopyingVariableClient', 'LocalVariableClient', 'Publisher',
  'RemoteVariableClient', 'ScheduledVariableClient', 'SharedVariableClient',
  'VariableClient',
]  # fmt: skip
