"""Checks which servers of this package another machine can reach.

A program that prints JSON: the result of a connection by server. Its arguments
name implementations of remote calls. It must run in its own, empty network
namespace, and makes a second one, which simulates the other machine, behind a
virtual cable. A third one, behind another cable, is a stranger with routes to
all addresses of this machine.
"""

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence

from repertory.components import replay
from repertory.components.network import addresses, network_interfaces
from repertory.launch.launchers import rpc
from repertory.launch.platform import ports
from support.replay import replay_fixture
from support.system import namespaces

_HERE, _THERE = '10.77.0.1', '10.77.0.2'
# A second address of this machine on the same interface, without a server.
_ALSO_HERE = '10.77.0.3'
_GATE, _STRANGER = '10.76.0.1', '10.76.0.2'

# Prints the result of a connection to the address in its arguments.
_CONNECT = """
import socket, sys
try:
  socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).close()
except TimeoutError:
  print('timed out')
except ConnectionRefusedError:
  print('refused')
else:
  print('connected')
"""


@contextlib.contextmanager
def _other_machine(hub: str, here: Sequence[str], there: str) -> Iterator[str]:
  """Yields the command prefix that runs a command on the other machine."""
  sleeper = subprocess.Popen(['unshare', '--net', 'sleep', '120'])
  try:
    namespaces.make_hub(hub, *here)
    yield namespaces.join(sleeper.pid, hub, f'{hub}port', there)
  finally:
    sleeper.kill()
    sleeper.wait()


@contextlib.contextmanager
def _service(carrier_name: str, interface: network_interfaces.Interface):
  """Yields the port of a server of an implementation of remote calls."""
  library = rpc.get(carrier_name)
  served = {'double': lambda number: 2 * number}
  with (
    ports.held() as port,
    library.serving(
      port, served, num_threads=4, token='token', interface=interface
    ),
  ):
    client = library.make_client(interface.address(port), 20, 'token')
    assert client.double(21) == 42
    yield port


def _connect(port: int, command: str = '', address: str = _HERE) -> str:
  return subprocess.run(
    [*command.split(), sys.executable, '-c', _CONNECT, address, str(port)],
    check=True,
    timeout=30,
    stdout=subprocess.PIPE,
    text=True,
  ).stdout.strip()


def main():
  results = {}
  with (
    _other_machine('own', [_HERE, _ALSO_HERE], _THERE) as there,
    _other_machine('other', [_GATE], _STRANGER) as stranger,
  ):
    namespaces.run(f'{stranger} ip route add {_HERE} via {_GATE}')
    both = network_interfaces.of_address(_HERE)
    for what, interface in (
      ('lo', network_interfaces.LOOPBACK),
      ('both', both),
    ):
      table = replay_fixture.make_prioritized()
      server = replay.make_server([table], interface=interface)
      name = f'replay, over {what}'
      results[name, 'here'] = _connect(server.port)
      results[name, 'there'] = _connect(server.port, there)
      if interface is both:
        results[name, 'a stranger'] = _connect(server.port, stranger)
        also = _connect(server.port, there, _ALSO_HERE)
        results[name, 'there, at another address'] = also
      server.stop()
    with contextlib.closing(socket.create_server((_HERE, 0))) as unfiltered:
      port = unfiltered.getsockname()[1]
      results['what has no filter', 'a stranger'] = _connect(port, stranger)
    listener, address = addresses.listen(both)
    with listener:
      port = int(address.rpartition(':')[2])
      for who, command in (
        ('here', ''), ('there', there), ('a stranger', stranger),
      ):  # fmt: skip
        results['inference', who] = _connect(port, command)
    for name in sys.argv[1:]:
      for what, interface in (
        ('lo', network_interfaces.LOOPBACK),
        ('both', both),
      ):
        with _service(name, interface) as port:
          of = f'{name}, over {what}'
          results[of, 'here'] = _connect(port, address=interface.host)
          results[of, 'there'] = _connect(port, there)
          results[of, 'a stranger'] = _connect(port, stranger)
          also = _connect(port, there, _ALSO_HERE)
          results[of, 'there, at another address'] = also
  print(
    json.dumps({', from '.join(key): what for key, what in results.items()})
  )


if __name__ == '__main__':
  main()
