"""RPC by Courier: servers and clients."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import Any

import courier
from courier.python.client import translate_status

from repertory.components.network import network_interfaces
from repertory.launch.launchers import calls


def make_client(
  address: str, timeout_seconds: float, token: str
) -> courier.Client:
  """Makes a client, which connects on the first call."""
  del token
  return _Client(address, call_timeout=timeout_seconds)


class _Client(courier.Client):
  """Courier client whose futures may be canceled at any time.

  With Courier's own futures, a reply to a canceled call crashes the process:
  the exception of `set_result` is not caught.
  """

  def _begin(self, method, *arguments, **named):
    found: futures.Future = futures.Future()

    def set_result(result: Any) -> None:
      with contextlib.suppress(futures.InvalidStateError):
        found.set_result(result)

    def set_exception(status: Any) -> None:
      with contextlib.suppress(futures.InvalidStateError):
        found.set_exception(translate_status(status))

    call = self._client.AsyncPyCall(
      method,
      list(arguments),
      named,
      set_result,
      set_exception,
      True,  # Wait for the server.
      self._call_timeout,
      False,  # No compression.
    )
    found.add_done_callback(
      lambda found: call.Cancel() if found.cancelled() else None
    )
    return found

  @property
  def futures(self) -> Any:
    return calls.RemoteMethods(self._begin)


@contextlib.contextmanager
def serving(
  port: int,
  served: Mapping[str, Callable[..., Any]],
  *,
  num_threads: int,
  token: str,
  interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
) -> Iterator[None]:
  """Serves calls while the block runs."""
  del token
  server = courier.Server(port=port, thread_pool_size=num_threads)
  for name, method in served.items():
    server.Bind(name, method)
  server.Start()
  try:
    network_interfaces.restrict(server.port, interface)
    yield
  finally:
    server.Stop()
    server.Join()
