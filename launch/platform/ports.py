"""Reservation of ports for servers that start later."""

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def held() -> Iterator[int]:
  """Yields a TCP port of this host that is reserved while the block runs.

  A port that is free now may be taken by the time its server binds it, seconds
  later or after a restart. Here, a socket binds the port without listening. So
  the kernel assigns it to no other server that asks for any port, and to no
  connection. A server that asks for this port gets it if it sets SO_REUSEADDR,
  as Courier's does: Linux lets such sockets share a port as long as none
  listens. Of two such servers, the second is refused.
  """
  with _bind() as holder:
    yield holder.getsockname()[1]


def _bind() -> socket.socket:
  """Binds a socket to a free port on all addresses, including IPv6."""
  if socket.has_dualstack_ipv6():
    holder = socket.socket(socket.AF_INET6)
    holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
  else:
    holder = socket.socket(socket.AF_INET)
  try:
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(('', 0))
  except BaseException:
    holder.close()
    raise
  return holder
