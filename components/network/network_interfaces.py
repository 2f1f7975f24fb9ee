"""Restricts servers of this process to chosen network interfaces.

Neither Reverb nor Courier can bind to one network interface, and a server bound
to an address can also be reached over other interfaces that route to it. But a
process may attach a packet filter to its own sockets without any privilege, and
the kernel drops packets that the filter rejects (socket(7), SO_ATTACH_FILTER;
the program is classic BPF, as in "The BSD Packet Filter", McCanne and Jacobson,
1993).
"""

import contextlib
import ctypes
import dataclasses
import ipaddress
import itertools
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator, Sequence

import psutil
from absl import logging

_IP = (socket.AF_INET, socket.AF_INET6)
_IS_LINUX = sys.platform == 'linux'

_SO_ATTACH_FILTER = _SO_GET_FILTER = 26

# Opcodes of classic BPF, and offsets of a packet's interface index and of its
# network header.
_LOAD_WORD, _LOAD_BYTE, _AND, _JUMP_IF_EQUAL, _RETURN = (
  0x20, 0x30, 0x54, 0x15, 0x06,
)  # fmt: skip
_INTERFACE_INDEX, _NETWORK_HEADER = 0xFFFFF000 + 8, 0xFFF00000
# Offsets in that header, by IP version.
_RECEIVER_AT = {4: 16, 6: 24}
# Operation, instructions to skip if it is true and if it is false, operand.
_INSTRUCTION = struct.Struct('HBBI')
_ACCEPT, _REJECT = (_RETURN, 0, 0, 0xFFFFFFFF), (_RETURN, 0, 0, 0)


@dataclasses.dataclass(frozen=True)
class Interface:
  """The network interfaces over which a process's servers can be reached.

  Attributes:
    host: The address for clients; a name for this machine only.
    names: The network interfaces that servers listen on: loopback, and at most
      one other.
  """

  host: str
  names: Sequence[str]

  def address(self, port: int) -> str:
    """Returns the address of a server at a port, as 'host:port'."""
    host = f'[{self.host}]' if ':' in self.host else self.host
    return f'{host}:{port}'


LOOPBACK = Interface('localhost', ('lo' if _IS_LINUX else 'lo0',))


def of_address(address: str) -> Interface:
  """Returns the interface that has an IP address; loopback is included.

  Raises:
    ValueError: If this machine does not have it, listing those that it has.
  """
  found = _find_addresses()
  for name, addresses in found.items():
    if address in addresses:
      return Interface(address, tuple(dict.fromkeys((*LOOPBACK.names, name))))
  known = ', '.join(sorted(itertools.chain(*found.values())))
  raise ValueError(
    f'address must be one of this machine ({known}), got {address!r}.'
  )


def of_network(network: str) -> Interface:
  """Returns the interface of this machine that belongs to a network.

  Args:
    network: An interface name, such as 'eth1', or an address range, such as
      '10.0.0.0/16'.

  Raises:
    ValueError: If this machine is not in it, listing its interfaces.
  """
  found = _find_addresses()
  chosen = found.get(network, [])
  with contextlib.suppress(ValueError):  # A name.
    range_ = ipaddress.ip_network(network, strict=False)
    own = itertools.chain(*found.values())
    chosen = [one for one in own if ipaddress.ip_address(one) in range_]
  if chosen:
    return of_address(chosen[0])
  known = ', '.join(f'{name} ({" ".join(a)})' for name, a in found.items())
  raise ValueError(
    f'must be a network of {socket.gethostname()}, by name or addresses; it '
    f'has {known}; got {network!r}.'
  )


def addresses_to_bind(interface: Interface) -> list[str]:
  """Returns the addresses for servers that can bind: loopback and the host.

  A network interface may have more addresses, some of them reachable remotely.
  """
  found = _find_addresses()
  own = [one for name in LOOPBACK.names for one in found.get(name, ())]
  is_own = interface.host in (LOOPBACK.host, *own)
  return own if is_own else [*own, interface.host]


def _find_addresses() -> dict[str, list[str]]:
  """Returns this machine's IP addresses by interface, without link-local ones.

  psutil appends the scope to those, as in 'fe80::1%eth0'.
  """
  return {
    name: [
      one.address
      for one in entries
      if one.family in _IP and '%' not in one.address
    ]
    for name, entries in psutil.net_if_addrs().items()
  }


def restrict(port: int, interface: Interface = LOOPBACK) -> None:
  """Restricts a TCP server of this process to an interface.

  Other machines reach it at the host's address only. For all others, also on
  accepted connections, it times out, as behind a firewall. If the system has no
  such filters, which only Linux has, a warning is logged that the port stays
  open, unless the server is bound to a loopback address.

  Args:
    port: A port on which a server listens already.
    interface: The interface to restrict it to.

  Raises:
    ValueError: If no socket of this process listens there.
  """
  program = _write_filter(interface)
  is_listening = False
  for server in _sockets_at(port):
    listens = bool(server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    is_listening |= listens
    try:
      _attach(server, program)
    except OSError as error:
      host = ipaddress.ip_address(server.getsockname()[0])
      # A connection may have ended; loopback needs no filter.
      if not listens or host.is_loopback:
        continue
      logging.warning(
        'Port %d is open to all machines that can reach this one, because its '
        'system has no socket filters (%s). Put it behind a firewall.',
        port,
        error,
      )
  if not is_listening:
    raise ValueError(
      f'port must be one on which a server of this process listens, got {port}.'
    )


def _sockets_at(port: int) -> Iterator[socket.socket]:
  """Yields duplicates of this process's TCP sockets at a local port."""
  for name in os.listdir('/proc/self/fd' if _IS_LINUX else '/dev/fd'):
    with contextlib.suppress(OSError):  # Closed meanwhile.
      if not stat.S_ISSOCK(os.stat(int(name)).st_mode):
        continue
      with socket.socket(fileno=os.dup(int(name))) as one:
        is_tcp = one.family in _IP and one.type == socket.SOCK_STREAM
        if is_tcp and one.getsockname()[1] == port:
          yield one


def _write_filter(interface: Interface) -> bytes:
  """Writes a filter: from loopback all packets, else those to the host."""
  program = [(_LOAD_WORD, 0, 0, _INTERFACE_INDEX)]
  for name in LOOPBACK.names:
    index = socket.if_nametoindex(name)
    program += [(_JUMP_IF_EQUAL, 0, 1, index), _ACCEPT]

  def require(value: int) -> None:
    """Rejects packets unless the value loaded last is this one."""
    program.extend([(_JUMP_IF_EQUAL, 1, 0, value), _REJECT])

  for name in set(interface.names).difference(LOOPBACK.names):
    require(socket.if_nametoindex(name))
    host = ipaddress.ip_address(interface.host)
    # The version is the upper half of a byte.
    program += [(_LOAD_BYTE, 0, 0, _NETWORK_HEADER), (_AND, 0, 0, 0xF0)]
    require(host.version << 4)
    start = _NETWORK_HEADER + _RECEIVER_AT[host.version]
    for i in range(0, len(host.packed), 4):
      program.append((_LOAD_WORD, 0, 0, start + i))
      require(int.from_bytes(host.packed[i : i + 4], 'big'))
    program.append(_ACCEPT)
  program.append(_REJECT)
  return b''.join(_INSTRUCTION.pack(*instruction) for instruction in program)


def _attach(server: socket.socket, instructions: bytes) -> None:
  """Attaches a packet filter to a socket; raises OSError if that fails."""
  if not _IS_LINUX:  # The option's number may mean something else.
    raise OSError(f'{sys.platform} is not Linux')
  count = len(instructions) // _INSTRUCTION.size
  memory = ctypes.create_string_buffer(instructions)
  program = struct.pack('HP', count, ctypes.addressof(memory))
  server.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
  # Linux returns the filter; other systems may have ignored it silently.
  size = len(instructions)
  found = server.getsockopt(socket.SOL_SOCKET, _SO_GET_FILTER, size)
  if len(found) != count:
    raise OSError('the filter was not attached')
