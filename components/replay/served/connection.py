"""Connection to a replay server: status, snapshots and other connections."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from repertory.components.network import client_stream, frames
from repertory.components.replay import tables as tables_lib
from repertory.components.replay import waits
from repertory.components.replay.served import protocol
from repertory.components.runtime import signals

# A server answers at once, unless its machine is overloaded; time limits of a
# query, and of one during a wait.
_STATUS_SECONDS, _LOOK_SECONDS = 60.0, 2.0
# Time in which a launcher notices that a server was lost.
_GRACE_SECONDS = 10.0
# Writing many gigabytes takes minutes.
_SNAPSHOT_SECONDS = 1800.0


class ServerConnection(waits.WaitPolicy):
  """Address of a replay server, with the settings of waits on it."""

  def __init__(
    self,
    address: str,
    timeout_seconds: float = 600.0,
    stop: signals.StopSignal | None = None,
    token: str = '',
  ):
    """Takes the server's address and token; for the others see `WaitPolicy`."""
    super().__init__(timeout_seconds, stop or signals.StopSignal())
    self.address = address
    self._token = token
    self._lock = threading.Lock()
    self._status_stream: client_stream.ClientStream | None = None

  def __str__(self) -> str:
    return f'the replay server at {self.address}'

  def open(
    self,
    purpose: str,
    table: tables_lib.TableSpec,
    **more: Any,
  ) -> client_stream.ClientStream:
    """Opens a stream for a purpose that concerns a table; see `protocol`."""
    return client_stream.ClientStream(
      self.address,
      protocol.hello(purpose, self._token, table, **more),
      server='replay server',
      timeout_seconds=self.timeout_seconds,
      stop=self.stop,
      grace_seconds=_GRACE_SECONDS,
    )

  def statuses(self) -> Mapping[str, tables_lib.TableInfo]:
    """Queries the status of all tables, by name.

    Raises:
      TimeoutError: If the server does not answer.
      ConnectionError: If the server is gone.
    """
    with self._lock:
      stream = self._status_stream or self._open(
        protocol.STATUS, _STATUS_SECONDS
      )
      self._status_stream = None
      found = _ask_status(stream)
      self._status_stream = stream
    return found

  def look(self, table: tables_lib.TableSpec) -> tables_lib.TableInfo:
    """Queries a table's status; raises an error after a short timeout."""
    stream = self._open(protocol.STATUS, _LOOK_SECONDS)
    with contextlib.closing(stream):
      return _ask_status(stream)[table.name]

  def take_snapshot(self) -> Callable[[], str]:
    """Fixes the contents of a snapshot of all tables.

    Returns a function that waits until it is written, and returns its folder.
    It raises a ReplayCheckpointError if that fails, perhaps because the disk is
    full.
    """
    stream = self._open(protocol.SNAPSHOT, _SNAPSHOT_SECONDS)
    _ask(stream, 'a snapshot')

    def wait() -> str:
      with contextlib.closing(stream):
        answer = stream.receive_json(protocol.ANSWER, 'a written snapshot')
      if 'error' in answer:
        raise waits.ReplayCheckpointError(
          f'{self} could not write a snapshot: {answer["error"]}'
        )
      return answer['path']

    return wait

  def _open(
    self, purpose: str, timeout_seconds: float
  ) -> client_stream.ClientStream:
    """Opens a stream for all tables, also after the stop."""
    return client_stream.ClientStream(
      self.address,
      protocol.hello(purpose, self._token, None),
      server='replay server',
      timeout_seconds=timeout_seconds,
      stop=signals.StopSignal(),
    )


def _ask(stream: client_stream.ClientStream, what: str) -> dict[str, Any]:
  """Sends a request without content; closes the stream on errors."""
  try:
    stream.send(memoryview(frames.header(protocol.ASK, 0)), 'a request')
    return stream.receive_json(protocol.ANSWER, what)
  except BaseException:
    stream.close()
    raise


def _ask_status(
  stream: client_stream.ClientStream,
) -> Mapping[str, tables_lib.TableInfo]:
  """Queries the status of all tables; closes the stream on errors."""
  answer = _ask(stream, 'the status')
  return {name: tables_lib.TableInfo(*info) for name, info in answer.items()}
