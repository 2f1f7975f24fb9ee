"""Calls between nodes: by Courier where it is installed, otherwise by gRPC.

The launching process chooses for all nodes. Callers and servers do not depend
on the choice.
"""

import contextlib
import dataclasses
import importlib.util
import os
from collections.abc import Callable, Mapping
from typing import Any

from repertory.components.config.settings import SettingError
from repertory.components.network import network_interfaces
from repertory.launch import launchers

COURIER, GRPC = 'courier', 'grpc'

# Environment variable that selects the library, for tests and benchmarks.
VARIABLE = 'REPERTORY_CALLS'


@dataclasses.dataclass(frozen=True)
class Rpc:
  """Clients and servers of the nodes of one launch."""

  library: str
  token: str
  timeout_seconds: float  # Of calls.
  num_threads: int  # Maximum concurrent calls to a node.

  def make_client(self, address: str) -> Any:
    """Makes a client of a node; see `grpc_servers.Client`."""
    library = get(self.library)
    return library.make_client(address, self.timeout_seconds, self.token)

  def serving(
    self,
    port: int,
    served: Mapping[str, Callable[..., Any]],
    interface: network_interfaces.Interface,
  ) -> contextlib.AbstractContextManager[None]:
    """Serves calls while the block runs; see `grpc_servers.serving`."""
    return get(self.library).serving(
      port,
      served,
      num_threads=self.num_threads,
      token=self.token,
      interface=interface,
    )


def chosen() -> str:
  """Returns the name of the RPC library of the next launch.

  Raises:
    SettingError: If the environment variable names an unavailable library.
  """
  # Not `courier`, which may be an unrelated package.
  has_courier = importlib.util.find_spec('launchpad') is not None
  known = (COURIER, GRPC) if has_courier else (GRPC,)
  name = os.environ.get(VARIABLE) or known[0]
  if name not in known:
    needed = '' if has_courier else ' without Launchpad, which has Courier'
    raise SettingError(
      VARIABLE, f'must be {" or ".join(known)}{needed}, got {name!r}.'
    )
  return name


def get(name: str) -> Any:
  """Returns the RPC module, with `make_client` and `serving`, by its name."""
  if name == COURIER:
    return launchers.courier_servers
  return launchers.grpc_servers
