"""Tests that servers accept connections of this machine only."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

from repertory.components.network import network_interfaces
from support.system import namespaces, stacks, two_machines


@pytest.mark.chaos
@pytest.mark.skipif(
  not namespaces.can_be_made(), reason='needs network namespaces (unshare, ip)'
)
def test_another_machine_reaches_only_what_is_opened_to_it():
  names = [*(['courier'] if stacks.HAS_LAUNCHPAD else []), 'grpc']
  program = subprocess.run(
    [
      *namespaces.WITHIN_ONE,
      sys.executable,
      '-m',
      two_machines.__name__,
      *names,
    ],
    cwd=pathlib.Path(__file__).parents[2],
    check=True,
    timeout=200,
    stdout=subprocess.PIPE,
    text=True,
  )
  expected = {
    'replay, over lo, from here': 'connected',
    'replay, over lo, from there': 'timed out',
    'replay, over both, from here': 'connected',
    'replay, over both, from there': 'connected',
    'replay, over both, from there, at another address': 'timed out',
    'replay, over both, from a stranger': 'timed out',
    'what has no filter, from a stranger': 'connected',
    'inference, from here': 'connected',
    'inference, from there': 'connected',
    'inference, from a stranger': 'timed out',
  }
  # Servers bound to addresses do not listen at others.
  refusals = {'courier': 'timed out', 'grpc': 'refused'}
  for name in names:
    expected |= {
      f'{name}, over lo, from here': 'connected',
      f'{name}, over lo, from there': refusals[name],
      f'{name}, over lo, from a stranger': refusals[name],
      f'{name}, over both, from here': 'connected',
      f'{name}, over both, from there': 'connected',
      f'{name}, over both, from a stranger': 'timed out',
      f'{name}, over lo, from there, at another address': refusals[name],
      f'{name}, over both, from there, at another address': refusals[name],
    }
  assert json.loads(program.stdout) == expected


def test_data_passes_in_both_directions_on_connections_old_and_new():
  with socket.create_server(('::', 0), family=socket.AF_INET6) as server:
    port = server.getsockname()[1]
    data = bytes(range(256)) * 10_000
    with socket.create_connection(('::1', port), 5) as old:
      accepted, _ = server.accept()
      network_interfaces.restrict(port)
      new = socket.create_connection(('::1', port), 5)
      accepted_later, _ = server.accept()
      with accepted, accepted_later, new:
        for one, other in ((old, accepted), (new, accepted_later)):
          for sender, receiver in ((one, other), (other, one)):
            sender.sendall(data[:50_000])
            received = receiver.recv(50_000, socket.MSG_WAITALL)
            assert received == data[:50_000]


@pytest.mark.parametrize(
  ('host', 'is_heard'),
  [
    ('127.0.0.1', {'127.0.0.1': True, '127.0.0.2': False, '::1': False}),
    ('::1', {'::1': True, '127.0.0.1': False}),
    ('1::1', {'::1': False}),
  ],
)
def test_other_machines_are_heard_at_one_address_alone(
  host, is_heard, monkeypatch
):
  # As if this machine's packets came from another one.
  monkeypatch.setattr(
    network_interfaces, 'LOOPBACK', network_interfaces.Interface('', ())
  )
  with socket.create_server(
    ('::', 0), family=socket.AF_INET6, dualstack_ipv6=True
  ) as server:
    port = server.getsockname()[1]
    network_interfaces.restrict(
      port, network_interfaces.Interface(host, ('lo',))
    )
    for address, is_expected in is_heard.items():
      with contextlib.ExitStack() as stack:
        if not is_expected:
          stack.enter_context(pytest.raises(TimeoutError))
        seconds = 5 if is_expected else 0.3
        socket.create_connection((address, port), seconds).close()


def test_no_file_is_left_open():
  with socket.create_server(('', 0)) as server:
    before = sorted(os.listdir('/proc/self/fd'))
    for _ in range(3):
      network_interfaces.restrict(server.getsockname()[1])
    assert sorted(os.listdir('/proc/self/fd')) == before


def test_port_without_server_is_refused():
  with socket.socket() as silent:
    silent.bind(('localhost', 0))
    port = silent.getsockname()[1]
    with pytest.raises(ValueError, match=f'listens, got {port}'):
      network_interfaces.restrict(port)


@pytest.mark.parametrize(
  ('host', 'is_open'), [('', True), ('127.0.0.1', False)]
)
def test_system_without_filters_leaves_a_warning(
  host, is_open, monkeypatch, caplog
):
  monkeypatch.setattr(network_interfaces, '_IS_LINUX', False)
  with socket.create_server((host, 0)) as server:
    port = server.getsockname()[1]
    network_interfaces.restrict(port)
  assert (f'Port {port} is open to all' in caplog.text) == is_open
  assert ('is not Linux' in caplog.text) == is_open
