"""Calls to other nodes, and waits for servers and replies."""

import functools
import pickle
import socket
from collections.abc import Callable
from concurrent import futures
from typing import Any

from repertory.components import core
from repertory.components.network import callers
from repertory.components.runtime import signals
from repertory.launch.coordination import reports
from repertory.launch.platform import watchdog


class RemoteMethods:
  """Object whose attributes are remote methods."""

  def __init__(self, call: Callable[..., Any]):
    """Calls `call` with the name of the method and its arguments."""
    self._call = call

  def __getattr__(self, method: str) -> Callable[..., Any]:
    if method.startswith('__'):  # Python protocols are not remote.
      raise AttributeError(method)
    return functools.partial(self._call, method)


class AuthenticatedClient:
  """Client of a node that checks its callers: adds the caller to each call."""

  def __init__(self, client: Any, caller: callers.Caller):
    self._client = client
    self._caller = caller

  @property
  def address(self) -> str:
    return self._client.address

  @property
  def futures(self) -> 'AuthenticatedClient':
    return AuthenticatedClient(self._client.futures, self._caller)

  def __getattr__(self, method: str) -> Callable[..., Any]:
    return functools.partial(getattr(self._client, method), tuple(self._caller))


def is_listening(client: Any) -> bool:
  """Returns whether the server of a client accepts connections."""
  host, _, port = client.address.rpartition(':')
  try:
    address = host.strip('[]'), int(port)
    socket.create_connection(address, reports.PERIOD_SECONDS).close()
  except OSError:
    return False
  return True


def wait_for_server(
  client: Any,
  timeout_seconds: float = watchdog.START_SECONDS,
  stop: signals.StopSignal | None = None,
) -> None:
  """Waits until the server of a client accepts connections.

  A call would wait as well, but Courier retries ever more rarely. The time-out
  is at least `watchdog.START_SECONDS`.

  Raises:
    signals.Stopped: If the stop signal was set first.
    TimeoutError: If the server does not start in time.
  """
  stop = stop or signals.StopSignal()

  def attempt(seconds: float) -> bool:
    if is_listening(client):
      return True
    stop.wait(seconds / 2)
    return False

  signals.wait_for(
    attempt,
    lambda: f'a node to listen at {client.address}',
    max(timeout_seconds, watchdog.START_SECONDS),
    stop,
  )


class RemoteSource(core.VariableSource):
  """The learner as a remote variable source, with calls that can be stopped."""

  def __init__(
    self, client: Any, timeout_seconds: float, stop: signals.StopSignal
  ):
    """Makes no calls yet; the time-out is that of the learner's start."""
    self._client = client
    self._timeout_seconds = timeout_seconds
    self._stop = stop
    self._is_found = False

  def get_variables(self, names):
    if not self._is_found:
      wait_for_server(self._client, self._timeout_seconds, self._stop)
      self._is_found = True
    call = self._client.futures.get_variables(names)
    while not futures.wait([call], timeout=reports.PERIOD_SECONDS).done:
      if self._stop.is_set():
        call.cancel()
        raise signals.Stopped
    # See `nodes.learning.cached`. The call has its own time-out.
    return pickle.loads(call.result())
