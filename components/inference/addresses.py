"""Where inference servers listen.

`unix:<name>` is a Unix socket in Linux's abstract namespace: it is on one host,
leaves no file behind, and is open to processes of the same user alone.
`tcp:<host>:<port>` reaches other hosts; who can reach it can use it.
"""

import os
import socket
import struct
import uuid

_UNIX = 'unix:'
_TCP = 'tcp:'
_BACKLOG = 256


def make_unix_address() -> str:
  """Returns an address that nobody else has."""
  return f'{_UNIX}repertory-{uuid.uuid4().hex}'


def listen(address: str) -> tuple[socket.socket, str]:
  """Starts to listen.

  Args:
    address: 'unix:<name>', or 'tcp:<host>:<port>' with port 0 for a free one.

  Returns:
    The listening socket, which does not block, and the address to connect to.

  Raises:
    ValueError: If the address is of another kind.
    OSError: If it cannot be listened at.
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
  host, port = listener.getsockname()[:2]
  return listener, f'{_TCP}{host}:{port}'


def connect(address: str, timeout_seconds: float) -> socket.socket:
  """Connects to a server.

  Raises:
    ValueError: If the address is of another kind.
    OSError: If nobody listens there.
  """
  family, place = _parse(address)
  stream = socket.socket(family, socket.SOCK_STREAM)
  try:
    stream.settimeout(timeout_seconds)
    stream.connect(place)
    tune(stream)
  except OSError:
    stream.close()
    raise
  return stream


def tune(stream: socket.socket) -> None:
  """Sends small frames at once, and notices a host that is gone."""
  if stream.family != socket.AF_UNIX:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def is_of_this_user(stream: socket.socket) -> bool:
  """Returns whether the other side may use the server.

  The kernel tells whose process is at a Unix socket; who may reach a TCP
  port is a matter of the network.
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
    return socket.AF_INET, (host, int(port))
  raise ValueError(
    f"address must be 'unix:<name>' or 'tcp:<host>:<port>', got {address!r}."
  )
