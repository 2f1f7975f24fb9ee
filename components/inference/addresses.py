"""Where inference servers listen.

`unix:<name>` is a Unix socket in Linux's abstract namespace: it is on one host,
leaves no file behind, and is open to processes of the same user alone.
`tcp:<host>:<port>` reaches other hosts; who reaches it and knows the token of
the run can use it.
"""

import contextlib
import os
import socket
import struct
import uuid

from repertory.components import interfaces

_UNIX = 'unix:'
_TCP = 'tcp:'
_BACKLOG = 256
# Of another host is asked after so long whether it is there, and it counts as
# gone when it has said nothing for so long.
_QUIET_SECONDS, _SILENT_SECONDS = 5, 20


def make_address(interface: interfaces.Interface = interfaces.LOOPBACK) -> str:
  """Returns where a server may listen, so that it is reached over an interface.

  On one host that is a Unix address that nobody else has.
  """
  if interface == interfaces.LOOPBACK:
    return f'{_UNIX}repertory-{uuid.uuid4().hex}'
  return f'{_TCP}{interface.address(0)}'


def listen(address: str) -> tuple[socket.socket, str]:
  """Starts to listen.

  Args:
    address: 'unix:<name>', or 'tcp:<host>:<port>' with port 0 for a free one.
      If the host is an address of this machine, it is reached over the
      interface that has it, and over the loopback interface. Over others the
      system would let in who asks for that address, too.

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
  host = address[len(_TCP) :].rpartition(':')[0]
  port = listener.getsockname()[1]
  interface = None
  with contextlib.suppress(ValueError):  # It is a name, or means all of them.
    interface = interfaces.of_address(host.strip('[]'))
  try:
    if interface:
      interfaces.restrict(port, interface)
  except BaseException:
    listener.close()
    raise
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
    # A host that is gone would never say so; who waits can ask where to go now.
    stream.settimeout(min(timeout_seconds, _SILENT_SECONDS))
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
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _QUIET_SECONDS)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _QUIET_SECONDS)
    stream.setsockopt(
      socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _SILENT_SECONDS
    )


def is_at(address: str, host: str) -> bool:
  """Returns whether an address is of a host, or of no other than this one."""
  if address.startswith(_UNIX):
    return True
  return _parse(address)[1][0] == host


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
    if host.startswith('[') and host.endswith(']'):
      return socket.AF_INET6, (host[1:-1], int(port))
    return socket.AF_INET, (host, int(port))
  raise ValueError(
    f"address must be 'unix:<name>' or 'tcp:<host>:<port>', got {address!r}."
  )
