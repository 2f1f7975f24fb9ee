"""Addresses and sockets of inference servers.

`unix:<name>` is a Unix socket in Linux's abstract namespace: it is local to a
host, leaves no file behind, and accepts processes of the same user only.
`tcp:<host>:<port>` can be reached from other hosts, by any client that knows
the run's token.
"""

import contextlib
import os
import socket
import struct
import uuid

from repertory.components.runtime import network_interfaces

_UNIX = 'unix:'
_TCP = 'tcp:'
_BACKLOG = 256
# TCP keep-alive: seconds of silence before probes, and until a host counts as
# lost.
_QUIET_SECONDS, _SILENT_SECONDS = 5, 20


def make_address(
  interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
) -> str:
  """Returns an address at which a server can be reached over an interface.

  On one host that is an unused Unix address.
  """
  if interface == network_interfaces.LOOPBACK:
    return f'{_UNIX}repertory-{uuid.uuid4().hex}'
  return f'{_TCP}{interface.address(0)}'


def listen(address: str) -> tuple[socket.socket, str]:
  """Opens a listening socket, which does not block.

  At 'tcp:<host>:<port>', port 0 is a free one. If the host is an address of
  this machine, only its interface and loopback are open: the system would
  accept connections to that address over others, too.

  Returns:
    The socket, and the address to connect to.

  Raises:
    ValueError: If the address is malformed.
    OSError: If it cannot be bound.
  """
  family, place = _parse(address)
  listener = socket.socket(family, socket.SOCK_STREAM)
  try:
    if family != socket.AF_UNIX:
      listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(place)
    listener.listen(_BACKLOG)
  except OSError:
    listener.close()
    raise
  listener.setblocking(False)
  if family == socket.AF_UNIX:
    return listener, address
  host = address[len(_TCP) :].rpartition(':')[0]
  port = listener.getsockname()[1]
  interface = None
  with contextlib.suppress(ValueError):  # A name, or all interfaces.
    interface = network_interfaces.of_address(host.strip('[]'))
  try:
    if interface:
      network_interfaces.restrict(port, interface)
  except BaseException:
    listener.close()
    raise
  return listener, f'{_TCP}{host}:{port}'


def connect(address: str, timeout_seconds: float) -> socket.socket:
  """Connects to a server.

  Raises:
    ValueError: If the address is malformed.
    OSError: If no server listens there.
  """
  family, place = _parse(address)
  stream = socket.socket(family, socket.SOCK_STREAM)
  try:
    # A lost host would never answer; after a time-out the caller can ask for
    # the server's new address.
    stream.settimeout(min(timeout_seconds, _SILENT_SECONDS))
    stream.connect(place)
    tune(stream)
  except OSError:
    stream.close()
    raise
  return stream


def tune(stream: socket.socket) -> None:
  """Sends small frames immediately, and detects lost hosts."""
  if stream.family != socket.AF_UNIX:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _QUIET_SECONDS)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _QUIET_SECONDS)
    stream.setsockopt(
      socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _SILENT_SECONDS
    )


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


def _parse(address: str):
  if address.startswith(_UNIX) and len(address) > len(_UNIX):
    return socket.AF_UNIX, '\0' + address[len(_UNIX) :]
  host, colon, port = address[len(_TCP) :].rpartition(':')
  is_port = port.isascii() and port.isdigit() and int(port) < 1 << 16
  if address.startswith(_TCP) and colon and host and is_port:
    if host.startswith('[') and host.endswith(']'):
      return socket.AF_INET6, (host[1:-1], int(port))
    return socket.AF_INET, (host, int(port))
  raise ValueError(
    f"address must be 'unix:<name>' or 'tcp:<host>:<port>', got {address!r}."
  )
