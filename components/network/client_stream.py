"""Client side of a connection to a server of this package."""

import contextlib
import socket
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from repertory.components.network import addresses, frames
from repertory.components.runtime import signals

# Interval at which waits check the stop signal.
_SLICE_SECONDS = 0.2


class ServerLost(ConnectionError):
  """The server cannot be reached, or has gone."""


class ClientStream:
  """Connection to a server, opened by a handshake.

  Every method that waits raises:
    frames.ProtocolError: If the server refuses; with its reason.
    ServerLost: If the server is gone.
    signals.Stopped: If the stop signal was set.
    TimeoutError: If it takes or sends no data for too long.

  Attributes:
    socket: The socket, with a short time-out.
  """

  def __init__(
    self,
    address: str,
    hello: Mapping[str, Any],
    *,
    server: str,
    timeout_seconds: float,
    stop: signals.StopSignal,
    grace_seconds: float = 0.0,
  ):
    """Connects and performs the handshake.

    Args:
      address: The server's address; see `addresses`.
      hello: Message of the handshake.
      server: Kind of the server in errors, such as 'inference server'.
      timeout_seconds: Time limit of each wait.
      stop: Ends waits when set.
      grace_seconds: Time from the loss of the server to the error: its launcher
        may report the loss, and set the stop signal.
    """
    self._server = f'{server} at {address}'
    self._timeout_seconds = timeout_seconds
    self._stop = stop
    self._grace_seconds = grace_seconds
    self._head = bytearray(frames.HEADER_SIZE)
    try:
      self.socket = addresses.connect(address, timeout_seconds)
    except OSError as error:
      raise ServerLost(f'No {server} answers at {address}: {error}.') from error
    self.socket.settimeout(_SLICE_SECONDS)
    # Some owners have no end of their own, as connections that query a status.
    weakref.finalize(self, self.socket.close)
    try:
      message = frames.pack_json(frames.HELLO, hello)
      self.send(memoryview(message), 'a handshake')
      self.receive(frames.WELCOME, memoryview(self._head), 'a welcome')
    except BaseException:
      self.close()
      raise

  def send(self, data: memoryview, what: str) -> None:
    """Sends data, described for errors."""
    self._transfer(data, self.socket.send, f'the {self._server} to take {what}')

  def receive(
    self,
    kind: int,
    frame: memoryview,
    what: str,
    stop: signals.StopSignal | None = None,
  ) -> None:
    """Receives a frame of one kind and of the size of `frame`.

    `stop` replaces the stop signal of the connection.
    """
    head, payload = frame[: frames.HEADER_SIZE], frame[frames.HEADER_SIZE :]
    self._fill(head, what, stop)
    self.check_header(head, kind, len(payload), what)
    self._fill(payload, what, stop)

  def receive_json(self, kind: int, what: str) -> dict[str, Any]:
    """Receives a JSON message of one kind."""
    head = memoryview(self._head)
    self._fill(head, what)
    size = frames.parse_header(head)[1]
    self.check_header(head, kind, min(size, frames.MAX_JSON_SIZE), what)
    return self._receive_payload(size, what)

  def receive_some(self, view: memoryview) -> memoryview:
    """Receives data, waiting for a moment; returns what is left of the buffer.

    Raises `frames.Disconnected` if the connection has ended.
    """
    return _advance(view, self.socket.recv_into)

  def check_header(
    self, head: memoryview, kind: int, size: int, what: str
  ) -> None:
    """Checks a received header; raises errors like `receive`."""
    found, found_size, _ = frames.parse_header(head)
    if found == frames.REFUSED:
      found_size = min(found_size, frames.MAX_JSON_SIZE)
      raise self.refused(self._receive_payload(found_size, 'a reason'))
    if found != kind or found_size != size:
      raise frames.ProtocolError(
        f'Expected {what} from the {self._server}, got a frame of kind '
        f'{found} with {found_size} bytes.'
      )

  def close(self) -> None:
    """Closes the connection; ends a wait of another thread."""
    with contextlib.suppress(OSError):  # It had ended.
      self.socket.shutdown(socket.SHUT_RDWR)
    self.socket.close()

  def lost(self) -> ServerLost:
    """Returns the error of a connection that has ended."""
    if self._stop.wait(self._grace_seconds):
      raise signals.Stopped
    return ServerLost(f'The {self._server} ended the connection.')

  def refused(self, message: Mapping[str, Any]) -> frames.ProtocolError:
    """Returns the error of a refusal."""
    return frames.ProtocolError(
      f'The {self._server} refuses: {message.get("reason")}'
    )

  def _receive_payload(self, size: int, what: str) -> dict[str, Any]:
    payload = bytearray(size)
    self._fill(memoryview(payload), what)
    return frames.parse_json(payload)

  def _fill(
    self,
    view: memoryview,
    what: str,
    stop: signals.StopSignal | None = None,
  ) -> None:
    wait = f'{what} from the {self._server}'
    self._transfer(view, self.socket.recv_into, wait, stop)

  def _transfer(
    self,
    view: memoryview,
    move: Callable[[memoryview], int],
    wait: str,
    stop: signals.StopSignal | None = None,
  ) -> None:
    """Sends or receives all of a buffer."""

    def attempt(_: float) -> bool:
      nonlocal view
      view = _advance(view, move)
      return not view

    try:
      signals.wait_for(
        attempt, lambda: wait, self._timeout_seconds, stop or self._stop
      )
    except frames.Disconnected as error:
      raise self.lost() from error


def _advance(view: memoryview, move: Callable[[memoryview], int]) -> memoryview:
  """Moves data by calls that return a count, until one of them times out.

  Returns what is left. Raises `frames.Disconnected`.
  """
  try:
    while view and (count := move(view)):
      view = view[count:]
  except TimeoutError:
    return view
  except OSError as error:
    raise frames.Disconnected from error
  if view:
    raise frames.Disconnected
  return view
