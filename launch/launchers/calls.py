"""How nodes wait for others, and for what they answer."""

import functools
import socket
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Any

from repertory.components import callers, core, signals
from repertory.launch.coordination import kinds, reports
from repertory.launch.host import watchdog
from repertory.launch.nodes import served_variables

# How often is looked for a node that is being started.
_LOOK_SECONDS = 0.1


class SignedClient:
  """A client of the coordinator that tells with each call who calls."""

  def __init__(self, client: Any, caller: callers.Caller):
    """Calls nobody yet.

    Args:
      client: Carries calls to it, see `carriers`.
    """
    self._client = client
    self.futures = _SignedCalls(client.futures, caller)
    self._calls = _SignedCalls(client, caller)

  @property
  def address(self) -> str:
    return self._client.address

  def __getattr__(self, method: str) -> Callable[..., Any]:
    return getattr(self._calls, method)


class _SignedCalls:
  def __init__(self, calls: Any, caller: callers.Caller):
    self._calls = calls
    self._caller = tuple(caller)

  def __getattr__(self, method: str) -> Callable[..., Any]:
    return functools.partial(getattr(self._calls, method), self._caller)


def signed(
  peers: Mapping[str, Any], caller: callers.Caller
) -> Mapping[str, Any]:
  """Returns the clients of a node, by name: calls of the coordinator signed."""
  name = kinds.COORDINATOR.name
  if name not in peers:
    return peers
  return {**peers, name: SignedClient(peers[name], caller)}


def result_of(call: futures.Future, should_stop: Callable[[], bool]) -> Any:
  """Waits for a call to another node, which has a time-out of its own.

  Raises:
    signals.Stopped: If the wait was ended by `should_stop`.
  """
  while not futures.wait([call], timeout=reports.PERIOD_SECONDS).done:
    if should_stop():
      call.cancel()
      raise signals.Stopped
  return call.result()


def is_listening(client: Any) -> bool:
  """Returns whether the server of a client takes connections."""
  host, _, port = client.address.rpartition(':')
  try:
    place = host.strip('[]'), int(port)
    socket.create_connection(place, reports.PERIOD_SECONDS).close()
  except OSError:
    return False
  return True


def wait_for_server(
  client: Any,
  timeout_seconds: float = watchdog.START_SECONDS,
  should_stop: Callable[[], bool] = lambda: False,
) -> None:
  """Waits until the server of a client takes connections.

  A call would do so, too, but by Courier it looks for the server ever less
  often: a minute after it began, only every half minute.

  Args:
    client: Calls a node that is being started.
    timeout_seconds: For its start, if that is more than the least.
    should_stop: Ends the wait.

  Raises:
    signals.Stopped: If the wait was ended.
    TimeoutError: If the server did not start in time.
  """
  timeout_seconds = max(timeout_seconds, watchdog.START_SECONDS)
  deadline = time.monotonic() + timeout_seconds
  while not is_listening(client):
    if should_stop():
      raise signals.Stopped
    if time.monotonic() > deadline:
      raise TimeoutError(
        f'Waited {timeout_seconds:g} seconds for a node to listen at '
        f'{client.address}.'
      )
    time.sleep(_LOOK_SECONDS)


class RemoteSource(core.VariableSource):
  """The learner elsewhere; a call to it ends when the node is stopped."""

  def __init__(
    self, client: Any, timeout_seconds: float, stop: signals.StopSignal
  ):
    """Calls nobody yet.

    Args:
      timeout_seconds: For its start.
      stop: Ends every wait.
    """
    self._client = client
    self._timeout_seconds = timeout_seconds
    self._stop = stop
    self._is_found = False

  def get_variables(self, names):
    if not self._is_found:
      wait_for_server(self._client, self._timeout_seconds, self._stop.is_set)
      self._is_found = True
    call = self._client.futures.get_variables(names)
    return served_variables.unpack(result_of(call, self._stop.is_set))
