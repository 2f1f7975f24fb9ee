"""By what nodes call each other: Courier's servers and clients."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import Any

import courier
from courier.python.client import translate_status

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
  return _Client(address, call_timeout=timeout_seconds)


class _Client(courier.Client):
  """Calls whose futures may be canceled at any moment.

  An answer to a future of Courier's own that has just been canceled ends the
  process: what `set_result` raises is caught by nobody.
  """

  @property
  def futures(self) -> Any:
    return _Calls(self)


class _Calls:
  def __init__(self, client: courier.Client):
    self._client = client

  def __getattr__(self, method: str) -> Callable[..., futures.Future]:
    return functools.partial(self._begin, method)

  def _begin(
    self, method: str, *arguments: Any, **named: Any
  ) -> futures.Future:
    found: futures.Future = futures.Future()

    def set_result(result: Any) -> None:
      with contextlib.suppress(futures.InvalidStateError):
        found.set_result(result)

    def set_exception(status: Any) -> None:
      with contextlib.suppress(futures.InvalidStateError):
        found.set_exception(translate_status(status))

    call = self._client._client.AsyncPyCall(
      method,
      list(arguments),
      named,
      set_result,
      set_exception,
      True,  # Waits for the server.
      self._client._call_timeout,
      False,  # Not compressed.
    )
    found.add_done_callback(
      lambda found: call.Cancel() if found.cancelled() else None
    )
    return found


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
