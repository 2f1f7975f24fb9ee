"""Parts of networks."""

from repertory.components.networks.heads import DuelingHead
from repertory.components.networks.initialization import create_variables
from repertory.components.networks.torsos import (
  FlatTorso,
  check_flat_observation,
)

__all__ = [
  'DuelingHead',
  'FlatTorso',
  'check_flat_observation',
  'create_variables',
]
