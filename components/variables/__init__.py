"""Variable clients, which keep an actor's variables up to date."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.variables.local_client import *
  from repertory.components.variables.remote_client import *
  from repertory.components.variables.variable_client import *

__all__ = [
  'LocalVariableClient', 'Publisher',
  'RemoteVariableClient', 'SharedVariableClient', 'Snapshot',
  'VariableClient',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
