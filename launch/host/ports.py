"""Ports of servers that are yet to be started."""

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def held() -> Iterator[int]:
  """Yields a TCP port of this machine that is kept free while the block runs.

  One that is only found free may be another's when its server binds it, seconds
  later, where that has to start first, or is started again. Here a socket binds
  it that does not listen. So the kernel gives it to nobody who asks for any
  port, nor to a connection. A server that asks for this one gets it if it sets
  SO_REUSEADDR, as Courier's does: Linux lets sockets with that share a port as
  long as none of them listens. Of two such servers the second is refused.
  """
  with _bind() as holder:
    yield holder.getsockname()[1]


def _bind() -> socket.socket:
  """Returns a socket at a free port of all addresses, also those of IPv6."""
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
