"""Reservation of ports for servers that start later."""

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def held() -> Iterator[int]:
  """Yields a TCP port of this host that is reserved while the block runs.

  A socket binds the port without listening, so the kernel assigns it to no
  other server that asks for any port. A server that asks for this port gets it
  if it sets SO_REUSEADDR, as Courier's does.
  """
  has_both = socket.has_dualstack_ipv6()
  with socket.socket(socket.AF_INET6 if has_both else socket.AF_INET) as holder:
    if has_both:
      holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(('', 0))  # To all addresses.
    yield holder.getsockname()[1]
