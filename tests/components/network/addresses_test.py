"""Tests of `components/network/addresses.py`."""

import contextlib
import os
import pathlib
import select
import socket
import struct
from unittest import mock

import pytest

from repertory.components.network import addresses, network_interfaces

DEADLINE_SECONDS = 10.0


@contextlib.contextmanager
def connected(host='localhost'):
  """Yields the address and both sides of a connection."""
  listener, address = addresses.listen(
    network_interfaces.Interface(host, ('lo',))
  )
  with (
    listener,
    addresses.connect(address, DEADLINE_SECONDS) as stream,
  ):
    assert select.select([listener], [], [], DEADLINE_SECONDS)[0]
    accepted = addresses.accept(listener)
    assert accepted is not None
    accepted.settimeout(DEADLINE_SECONDS)
    with accepted:
      yield address, stream, accepted


@pytest.mark.parametrize('host', ['localhost', '127.0.0.1', '::1'])
def test_connect(host):
  if host == '::1' and not pathlib.Path('/proc/net/if_inet6').exists():
    pytest.skip('This machine has no IPv6.')
  with connected(host) as (found, stream, accepted):
    stream.sendall(b'to')
    accepted.sendall(b'fro')
    assert accepted.recv(10) == b'to'
    assert stream.recv(10) == b'fro'
    assert stream.gettimeout() == DEADLINE_SECONDS
    assert found.startswith('unix:' if host == 'localhost' else 'tcp:')


def test_unix_addresses_differ_and_leave_no_file(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with connected() as (first, stream, _), connected() as (second, _, _):
    assert first != second
    # Abstract names begin with a zero byte.
    assert stream.getpeername() == b'\0' + first[len('unix:') :].encode()
    assert not list(tmp_path.iterdir())


def test_another_user_does_not():
  stream = mock.Mock(family=socket.AF_UNIX)
  # Process, user and group, as the kernel reports them.
  user = os.getuid()
  for peer, expected in ((user, True), (user + 1, False)):
    stream.getsockopt.return_value = struct.pack('3i', 1, peer, user)
    assert addresses.is_of_this_user(stream) == expected
