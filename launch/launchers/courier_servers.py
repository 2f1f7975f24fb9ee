"""By what nodes call each other: Courier's servers and clients."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import courier

from repertory.components import interfaces


def make_server(port: int, num_threads: int, token: str) -> courier.Server:
  """Returns a server that is yet to be started.

  Args:
    port: Where it will listen.
    num_threads: Calls that it takes at the same time.
    token: Not asked for: Courier tells a server nothing of who calls it.
  """
  del token
  return courier.Server(port=port, thread_pool_size=num_threads)


def make_client(
  address: str, timeout_seconds: float, token: str
) -> courier.Client:
  """Returns a client; it looks for the server when it is first called.

  Args:
    address: 'host:port'.
    timeout_seconds: How long a call may take.
    token: Not told.
  """
  del token
  return courier.Client(address, call_timeout=timeout_seconds)


@contextlib.contextmanager
def serving(
  server: courier.Server | None,
  served: Mapping[str, Callable[..., Any]],
  shut_down: Callable[[], None],
  interface: interfaces.Interface = interfaces.LOOPBACK,
) -> Iterator[None]:
  """Takes calls while the block runs.

  Args:
    server: None of a node that nobody calls, where nothing is done.
    served: What may be called, by name.
    shut_down: Called as `shutdown`.
    interface: Over what they come.
  """
  if server is None:
    yield
    return
  for name, method in served.items():
    server.Bind(name, method)
  server.Bind('shutdown', shut_down)
  server.Start()
  try:
    interfaces.restrict(server.port, interface)
    yield
  finally:
    server.Stop()
    server.Join()
