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
import struct
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import psutil
from absl import logging

_IP = (socket.AF_INET, socket.AF_INET6)

_SO_ATTACH_FILTER = _SO_GET_FILTER = 26

# Opcodes of classic BPF, and the offset of a packet's interface index.
_LOAD_WORD, _LOAD_BYTE = 0x20, 0x30
_AND = 0x54
_JUMP_IF_EQUAL = 0x15
_RETURN = 0x06
_INTERFACE_INDEX = 0xFFFFF000 + 8
_NETWORK_HEADER = 0xFFF00000
# Offsets in the network header: version (upper half of a byte), and destination
# address.
_VERSION_BITS = 0xF0
_RECEIVER_AT = {4: 16, 6: 24}

_ALL_BYTES = 0xFFFFFFFF
_NO_BYTES = 0


# Operation, instructions to skip if it is true and if it is false, operand.
_Instruction: TypeAlias = tuple[int, int, int, int]
_INSTRUCTION = struct.Struct('HBBI')
# Number of instructions, and their address.
_PROGRAM = struct.Struct('HP')


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


LOOPBACK = Interface('localhost', ('lo',))


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
  try:
    range_ = ipaddress.ip_network(network, strict=False)
  except ValueError:
    chosen = found.get(network, [])
  else:
    chosen = [
      address
      for address in itertools.chain(*found.values())
      if ipaddress.ip_address(address) in range_
    ]
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
  is_other = interface.host not in (LOOPBACK.host, *own)
  return [*own, interface.host] if is_other else own


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
  such filters, a warning is logged that the port stays open.

  Args:
    port: A port on which a server listens already.
    interface: The interface to restrict it to.

  Raises:
    ValueError: If no socket of this process listens there.
  """
  instructions = _write_filter(interface)
  is_listening = False
  for server in _sockets_at(port):
    listens = False
    try:
      listens = bool(server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
      is_listening |= listens
      _attach(server, instructions)
    except OSError as error:
      if not listens:
        continue  # A connection that has ended meanwhile.
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
  """Yields this process's TCP sockets at a local port."""
  for name in os.listdir('/proc/self/fd'):
    try:
      borrowed = socket.socket(
        socket.AF_INET6, socket.SOCK_STREAM, fileno=int(name)
      )
    except OSError:  # Not a socket, or closed by now.
      continue
    is_it = False
    with contextlib.suppress(OSError):
      protocol = borrowed.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL)
      is_tcp = protocol == socket.IPPROTO_TCP
      is_it = is_tcp and borrowed.getsockname()[1] == port
    try:
      if is_it:
        yield borrowed
    finally:
      borrowed.detach()


def _write_filter(interface: Interface) -> list[_Instruction]:
  """Builds a filter: from loopback all packets, else those to the host."""
  own = [name for name in interface.names if name in LOOPBACK.names]
  others = [name for name in interface.names if name not in LOOPBACK.names]
  # Comparisons of the accumulator, of which all must hold, and their loads.
  demand = [(_JUMP_IF_EQUAL, socket.if_nametoindex(name)) for name in others]
  if others:
    host = ipaddress.ip_address(interface.host)
    demand += [
      (_LOAD_BYTE, _NETWORK_HEADER),
      (_AND, _VERSION_BITS),
      (_JUMP_IF_EQUAL, host.version << 4),
    ]
    start = _NETWORK_HEADER + _RECEIVER_AT[host.version]
    for i in range(0, len(host.packed), 4):
      word = int.from_bytes(host.packed[i : i + 4], 'big')
      demand += [(_LOAD_WORD, start + i), (_JUMP_IF_EQUAL, word)]
  else:
    demand = [(_RETURN, _NO_BYTES)]
  size = len(demand)
  return [
    (_LOAD_WORD, 0, 0, _INTERFACE_INDEX),
    *(
      (_JUMP_IF_EQUAL, len(own) - 1 - i + size, 0, socket.if_nametoindex(name))
      for i, name in enumerate(own)
    ),
    *(
      (code, 0, size - i if code == _JUMP_IF_EQUAL else 0, operand)
      for i, (code, operand) in enumerate(demand)
    ),
    (_RETURN, 0, 0, _ALL_BYTES),
    (_RETURN, 0, 0, _NO_BYTES),
  ]


def _attach(server: socket.socket, parts: Sequence[_Instruction]) -> None:
  """Attaches a packet filter to a socket."""
  instructions = b''.join(_INSTRUCTION.pack(*part) for part in parts)
  memory = ctypes.create_string_buffer(instructions)
  program = _PROGRAM.pack(len(parts), ctypes.addressof(memory))
  server.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
  # Linux returns the filter; other systems may have ignored it silently.
  size = len(instructions)
  found = server.getsockopt(socket.SOL_SOCKET, _SO_GET_FILTER, size)
  if len(found) != len(parts):
    raise OSError('the filter was not attached')
