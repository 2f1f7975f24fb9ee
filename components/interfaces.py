"""Over which network interfaces servers of this process are reached.

Neither Reverb nor Courier can be told on which network interface to listen, and
who is bound to an address is also reached over others, by who knows a way. But
a process may attach a packet filter to sockets of its own, without any
privilege, and the kernel drops what the filter does not let through (socket(7),
SO_ATTACH_FILTER; the program is classic BPF, as in "The BSD Packet Filter",
McCanne and Jacobson, 1993).
"""

import contextlib
import ctypes
import dataclasses
import ipaddress
import os
import socket
from collections.abc import Iterator, Sequence

import psutil
from absl import logging

_IP = (socket.AF_INET, socket.AF_INET6)

_SO_ATTACH_FILTER = _SO_GET_FILTER = 26

# Operations of classic BPF, and where it finds the interface of a packet.
_LOAD_WORD, _LOAD_BYTE = 0x20, 0x30
_AND = 0x54
_JUMP, _JUMP_IF_EQUAL = 0x05, 0x15
_RETURN = 0x06
_INTERFACE_INDEX = 0xFFFFF000 + 8
_NETWORK_HEADER = 0xFFF00000
# Where that has the version, in the upper half of a byte, the sender, and to
# whom it is sent.
_VERSION_BITS = 0xF0
_SENDER_AT = {4: 12, 6: 8}
_RECEIVER_AT = {4: 16, 6: 24}

_ALL_BYTES = 0xFFFFFFFF
_NO_BYTES = 0

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class _Instruction(ctypes.Structure):
  _fields_ = (
    ('operation', ctypes.c_uint16),
    ('skip_if_true', ctypes.c_uint8),
    ('skip_if_false', ctypes.c_uint8),
    ('operand', ctypes.c_uint32),
  )


class _Program(ctypes.Structure):
  _fields_ = (
    ('length', ctypes.c_uint16),
    ('instructions', ctypes.POINTER(_Instruction)),
  )


@dataclasses.dataclass(frozen=True)
class Interface:
  """Over what others reach the servers of a process.

  Attributes:
    host: Under which address; by its name if that is this machine's own alone.
    names: The network interfaces that servers listen to.
  """

  host: str
  names: Sequence[str]

  def address(self, port: int) -> str:
    """Returns where a server is that listens at a port, as 'host:port'."""
    host = f'[{self.host}]' if ':' in self.host else self.host
    return f'{host}:{port}'


LOOPBACK = Interface('localhost', ('lo',))


def of_address(address: str) -> Interface:
  """Returns the interface that has an address; this machine is let in, too.

  Args:
    address: An IP address of this machine.

  Raises:
    ValueError: If it is none, with those that there are.
  """
  found = _find_addresses()
  for name, addresses in found.items():
    if address in map(_without_link, addresses):
      return Interface(address, tuple(dict.fromkeys((*LOOPBACK.names, name))))
  known = ', '.join(
    sorted(a for addresses in found.values() for a in addresses)
  )
  raise ValueError(
    f'address must be one of this machine, {known}; got {address!r}.'
  )


def of_network(network: str) -> Interface:
  """Returns the interface of this machine that belongs to a network.

  Args:
    network: Its name, such as 'eth1', or the addresses that it has, such as
      '10.0.0.0/16'.

  Raises:
    ValueError: If this machine is not in it, with the interfaces that it has.
  """
  addresses = {
    name: [_without_link(address) for address in entries]
    for name, entries in _find_addresses().items()
  }
  try:
    range_ = ipaddress.ip_network(network, strict=False)
  except ValueError:
    chosen = addresses.get(network, [])
  else:
    chosen = [
      address
      for entries in addresses.values()
      for address in entries
      if ipaddress.ip_address(address) in range_
    ]
  if chosen:
    return of_address(chosen[0])
  known = ', '.join(f'{name} ({" ".join(a)})' for name, a in addresses.items())
  raise ValueError(
    f'must be a network that {socket.gethostname()} is in, by name or '
    f'addresses; it has {known}; got {network!r}.'
  )


def addresses_of(interface: Interface) -> list[str]:
  """Returns the IP addresses that others may see this machine send from."""
  names = [name for name in interface.names if name not in LOOPBACK.names]
  return _addresses_of_all(names)


def addresses_to_bind(interface: Interface) -> list[str]:
  """Returns where a server listens that can be told: where others look for it.

  A network interface may have more addresses, some of them reached from afar.
  """
  found = _addresses_of_all(LOOPBACK.names)
  if interface.host not in (LOOPBACK.host, *found):
    found.append(interface.host)
  return found


def _addresses_of_all(names: Sequence[str]) -> list[str]:
  """Returns the IP addresses of interfaces, but for those of one link alone."""
  found = _find_addresses()
  return [
    address
    for name in names
    for address in found.get(name, ())
    if address == _without_link(address)
  ]


def _find_addresses() -> dict[str, list[str]]:
  """Returns this machine's IP addresses by interface, as psutil tells them."""
  return {
    name: [one.address for one in entries if one.family in _IP]
    for name, entries in psutil.net_if_addrs().items()
  }


def _without_link(address: str) -> str:
  """Leaves out the link, which psutil adds to an address of one link alone."""
  return address.partition('%')[0]


def restrict(
  port: int,
  interface: Interface = LOOPBACK,
  shut_out: Sequence[str] = (),
) -> None:
  """Lets a TCP server of this process hear an interface alone.

  From elsewhere it is heard at the host's address alone, though there may be
  other addresses of the same card.

  To other machines its port then looks like one behind a firewall: connections
  time out. This holds for what the server has accepted before, too, but for a
  connection that came since it listens and is not yet accepted.

  Where the system has no such filters, a warning says that the port stays open.

  Args:
    port: Where a server listens already.
    interface: Over what it is reached.
    shut_out: IP addresses of machines from which nothing is heard, over no
      interface; until this is called again without them.

  Raises:
    ValueError: If no socket of this process listens there.
  """
  instructions = _write_filter(
    interface, [ipaddress.ip_address(one) for one in shut_out]
  )
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
        'Port %d is open to all who reach this machine, for its system does '
        'not filter what a socket receives (%s). Put it behind a firewall.',
        port,
        error,
      )
  if not is_listening:
    raise ValueError(
      'port must be where a server of this process listens already, got '
      f'{port}.'
    )


def _sockets_at(port: int) -> Iterator[socket.socket]:
  """Lends this process's TCP sockets at a local port, one after the other."""
  for name in os.listdir('/proc/self/fd'):
    try:
      borrowed = socket.socket(
        socket.AF_INET6, socket.SOCK_STREAM, fileno=int(name)
      )
    except OSError:  # It is no socket, or closed by now.
      continue
    try:
      if _is_tcp_at(borrowed, port):
        yield borrowed
    finally:
      borrowed.detach()


def _is_tcp_at(connection: socket.socket, port: int) -> bool:
  with contextlib.suppress(OSError):
    protocol = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL)
    if protocol == socket.IPPROTO_TCP:
      return connection.getsockname()[1] == port
  return False


def _write_filter(
  interface: Interface, shut_out: Sequence[_Address]
) -> list[_Instruction]:
  """Writes what lets packets through that come over one, and not from those.

  A jump says how many instructions are skipped if a comparison holds, and how
  many if not.
  """
  own = [name for name in interface.names if name in LOOPBACK.names]
  others = [name for name in interface.names if name not in LOOPBACK.names]
  demand = []
  if others:
    demand = _demand_receiver(ipaddress.ip_address(interface.host))
  parts = [_Instruction(_LOAD_WORD, 0, 0, _INTERFACE_INDEX)]
  for i, name in enumerate([*others, *own]):
    # Behind those that are left, and the refusal.
    behind = len(interface.names) - i
    if name in own:
      behind += len(demand)
    index = socket.if_nametoindex(name)
    parts.append(_Instruction(_JUMP_IF_EQUAL, behind, 0, index))
  parts += [_Instruction(_RETURN, 0, 0, _NO_BYTES), *demand]
  for version, sender_at in _SENDER_AT.items():
    refusals = []
    for address in shut_out:
      if address.version == version:
        refusals += _refuse(address.packed, _NETWORK_HEADER + sender_at)
    if refusals:
      parts += [
        _Instruction(_LOAD_BYTE, 0, 0, _NETWORK_HEADER),
        _Instruction(_AND, 0, 0, _VERSION_BITS),
        _Instruction(_JUMP_IF_EQUAL, 1, 0, version << 4),
        _Instruction(_JUMP, 0, 0, len(refusals)),
        *refusals,
      ]
  parts.append(_Instruction(_RETURN, 0, 0, _ALL_BYTES))
  return parts


def _demand_receiver(host: _Address) -> list[_Instruction]:
  """Writes what drops a packet that is sent to another, and goes on else."""
  comparison = _compare(
    host.packed, _NETWORK_HEADER + _RECEIVER_AT[host.version]
  )
  return [
    _Instruction(_LOAD_BYTE, 0, 0, _NETWORK_HEADER),
    _Instruction(_AND, 0, 0, _VERSION_BITS),
    _Instruction(_JUMP_IF_EQUAL, 0, len(comparison) + 1, host.version << 4),
    *comparison,
    _Instruction(_JUMP, 0, 0, 1),
    _Instruction(_RETURN, 0, 0, _NO_BYTES),
  ]


def _refuse(address: bytes, place: int) -> list[_Instruction]:
  """Writes what drops a packet with an address at a place, and goes on else."""
  return [
    *_compare(address, place),
    _Instruction(_RETURN, 0, 0, _NO_BYTES),
  ]


def _compare(address: bytes, place: int) -> list[_Instruction]:
  """Writes what goes on if an address is at a place, else skips one more."""
  words = [address[i : i + 4] for i in range(0, len(address), 4)]
  parts = []
  for i, word in enumerate(words):
    to_the_end = 2 * (len(words) - 1 - i) + 1
    parts += [
      _Instruction(_LOAD_WORD, 0, 0, place + 4 * i),
      _Instruction(_JUMP_IF_EQUAL, 0, to_the_end, int.from_bytes(word, 'big')),
    ]
  return parts


def _attach(server: socket.socket, parts: Sequence[_Instruction]) -> None:
  """Lets a socket receive what a filter lets through, and nothing else."""
  instructions = (_Instruction * len(parts))(*parts)
  program = _Program(len(instructions), instructions)
  server.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(program))
  # Linux tells how many instructions there are; others may only have nodded.
  size = ctypes.sizeof(instructions)
  found = server.getsockopt(socket.SOL_SOCKET, _SO_GET_FILTER, size)
  if len(found) != len(instructions):
    raise OSError('what was attached is not there')
