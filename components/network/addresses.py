"""Addresses and sockets of inference and replay servers.

`unix:<name>` is a Unix socket in Linux's abstract namespace: it is local to a
host, leaves no file behind, and accepts processes of the same user only.
`tcp:<host>:<port>` can be reached from other hosts, or on systems without such
sockets from this one, by any client that knows the run's token.
"""

import contextlib
import dataclasses
import os
import socket
import struct
import uuid

from repertory.components.config import settings
from repertory.components.network import frames, network_interfaces

_UNIX = 'unix:'
_TCP = 'tcp:'
_BACKLOG = 256
_HAS_ABSTRACT_NAMES = hasattr(socket, 'SO_PEERCRED')  # Both are Linux's.
# TCP keep-alive: seconds of silence before probes, and until a host counts as
# lost.
_QUIET_SECONDS, _SILENT_SECONDS = 5, 20
_KEEP_ALIVE = {
  'TCP_KEEPIDLE': _QUIET_SECONDS,
  'TCP_KEEPINTVL': _QUIET_SECONDS,
  'TCP_USER_TIMEOUT': 1000 * _SILENT_SECONDS,
}


def listen(
  interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
) -> tuple[socket.socket, str]:
  """Opens a listening socket, which does not block.

  On one host that is a Unix socket where abstract names exist. With TCP only
  the interface and loopback are open: the system would accept connections to
  its address over others, too.

  Returns:
    The socket, and the address to connect to.

  Raises:
    OSError: If it cannot be bound.
  """
  if interface == network_interfaces.LOOPBACK and not _HAS_ABSTRACT_NAMES:
    interface = dataclasses.replace(interface, host='127.0.0.1')
  is_local, host = interface == network_interfaces.LOOPBACK, interface.host
  family = socket.AF_INET6 if ':' in host else socket.AF_INET
  if is_local:
    family = socket.AF_UNIX
  listener = socket.socket(family, socket.SOCK_STREAM)
  address = f'{_UNIX}repertory-{uuid.uuid4().hex}'
  try:
    listener.bind(_name_of(address) if is_local else (host, 0))
    listener.listen(_BACKLOG)
    if not is_local:
      port = listener.getsockname()[1]
      network_interfaces.restrict(port, interface)
      address = f'{_TCP}{interface.address(port)}'
  except BaseException:
    listener.close()
    raise
  listener.setblocking(False)
  return listener, address


def accept(listener: socket.socket) -> socket.socket | None:
  """Accepts a connection; returns None after closing that of another user."""
  stream, _ = listener.accept()
  if not is_of_this_user(stream):
    stream.close()
    return None
  _tune(stream)
  return stream


def refuse(stream: socket.socket, error: Exception) -> None:
  """Sends the reason for closing a connection, if the peer still listens."""
  with contextlib.suppress(OSError):
    reason = {'reason': settings.text_of(error)}
    stream.sendall(frames.pack_json(frames.REFUSED, reason))


def connect(address: str, timeout_seconds: float) -> socket.socket:
  """Connects to a server; raises OSError if none listens there."""
  # A lost host would never answer; after a time-out the caller can ask for the
  # server's new address.
  timeout_seconds = min(timeout_seconds, _SILENT_SECONDS)
  if address.startswith(_TCP):
    host, _, port = address.removeprefix(_TCP).rpartition(':')
    place = host.strip('[]'), int(port)
    stream = socket.create_connection(place, timeout_seconds)
    _tune(stream)
    return stream
  stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
  try:
    stream.settimeout(timeout_seconds)
    stream.connect(_name_of(address))
  except OSError:
    stream.close()
    raise
  return stream


def is_of_this_user(stream: socket.socket) -> bool:
  """Returns whether the other side may use the server.

  The kernel reports the user at a Unix socket; access to a TCP port is up to
  the network.
  """
  if stream.family != socket.AF_UNIX:
    return True
  credentials = stream.getsockopt(
    socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize('3i')
  )
  return struct.unpack('3i', credentials)[1] == os.getuid()


def _name_of(address: str) -> str:
  """Returns the name in the abstract namespace."""
  return '\0' + address.removeprefix(_UNIX)


def _tune(stream: socket.socket) -> None:
  """Sends small frames immediately, and detects lost hosts."""
  if stream.family != socket.AF_UNIX:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
      if hasattr(socket, name):  # Not all systems have all of these.
        stream.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
