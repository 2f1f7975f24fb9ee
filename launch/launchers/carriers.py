"""What carries the calls of nodes: Courier where it is installed, else gRPC.

The process that launches decides for all nodes of the launch, and each of them
is told. Whoever calls, or is called, does not know.
"""

import importlib.util
import os
from typing import Any

from repertory.components.settings import SettingError
from repertory.launch import launchers

COURIER, GRPC = 'courier', 'grpc'

# Of the environment: chooses by name, for tests and measurements.
VARIABLE = 'REPERTORY_CALLS'


def chosen() -> str:
  """Returns the name of what carries the calls of the next launch.

  Raises:
    SettingError: If there is none of the name that the environment tells.
  """
  # What else is called `courier` may be another package.
  has_courier = importlib.util.find_spec('launchpad') is not None
  name = os.environ.get(VARIABLE) or (COURIER if has_courier else GRPC)
  if name not in (COURIER, GRPC):
    raise SettingError(
      VARIABLE, f'must be {COURIER!r} or {GRPC!r}, got {name!r}.'
    )
  if name == COURIER and not has_courier:
    raise SettingError(
      VARIABLE,
      f'must be {GRPC!r} or left out without Launchpad, which brings Courier; '
      f'got {name!r}.',
    )
  return name


def get(name: str) -> Any:
  """Returns what carries calls, by name.

  It is a module with `make_server`, `make_client` and `serving`; both are
  described in `grpc_servers`.
  """
  if name == COURIER:
    return launchers.courier_servers
  return launchers.grpc_servers
