"""Choice of the RPC library: Courier where it is installed, otherwise gRPC.

The launching process chooses for all nodes. Callers and servers do not depend
on the choice.
"""

import importlib.util
import os
from typing import Any

from repertory.components.config.settings import SettingError
from repertory.launch import launchers

COURIER, GRPC = 'courier', 'grpc'

# Environment variable that selects the library, for tests and benchmarks.
VARIABLE = 'REPERTORY_CALLS'


def chosen() -> str:
  """Returns the name of the RPC library of the next launch.

  Raises:
    SettingError: If the environment variable names an unavailable library.
  """
  # Not `courier`, which may be an unrelated package.
  has_courier = importlib.util.find_spec('launchpad') is not None
  name = os.environ.get(VARIABLE) or (COURIER if has_courier else GRPC)
  if name not in (COURIER, GRPC):
    raise SettingError(
      VARIABLE, f'must be {COURIER!r} or {GRPC!r}, got {name!r}.'
    )
  if name == COURIER and not has_courier:
    raise SettingError(
      VARIABLE,
      f'must be {GRPC!r} or unset without Launchpad, which includes Courier; '
      f'got {name!r}.',
    )
  return name


def get(name: str) -> Any:
  """Returns the RPC module of this name.

  Both modules have `make_client` and `serving`; see `grpc_servers`.
  """
  if name == COURIER:
    return launchers.courier_servers
  return launchers.grpc_servers
