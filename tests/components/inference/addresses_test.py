"""Tests of `components/inference/addresses.py`."""

import contextlib
import os
import re
import select
import socket
import struct
from unittest import mock

import pytest

from repertory.components.inference import addresses

DEADLINE_SECONDS = 10.0


@contextlib.contextmanager
def connected(address):
  """Yields the address and both sides of a connection."""
  listener, address = addresses.listen(address)
  with (
    listener,
    addresses.connect(address, DEADLINE_SECONDS) as stream,
  ):
    assert select.select([listener], [], [], DEADLINE_SECONDS)[0]
    accepted, _ = listener.accept()
    accepted.settimeout(DEADLINE_SECONDS)
    with accepted:
      yield address, stream, accepted


@pytest.mark.parametrize(
  'address', ['unix', 'tcp:127.0.0.1:0', 'tcp:localhost:0']
)
def test_connect(address):
  if address == 'unix':
    address = addresses.make_address()
  with connected(address) as (found, stream, accepted):
    stream.sendall(b'to')
    accepted.sendall(b'fro')
    assert accepted.recv(10) == b'to'
    assert stream.recv(10) == b'fro'
    assert stream.gettimeout() == DEADLINE_SECONDS
    if address.startswith('unix:'):
      assert found == address


def test_unix_addresses_differ_and_leave_no_file(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  first, second = (addresses.make_address() for _ in range(2))
  assert first != second
  with connected(first) as (_, stream, _):
    # Abstract names begin with a zero byte.
    assert stream.getpeername() == b'\0' + first[len('unix:') :].encode()
    assert not list(tmp_path.iterdir())
  listener, _ = addresses.listen(first)  # Free as soon as it is closed.
  listener.close()


@pytest.mark.parametrize(
  'address',
  ['', 'unix:', 'tcp::80', 'tcp:localhost:http', 'tcp:127.0.0.1:65536'],
)
def test_bad_addresses(address):
  message = re.escape(f"'tcp:<host>:<port>', got {address!r}")
  with pytest.raises(ValueError, match=message):
    addresses.listen(address)
  with pytest.raises(ValueError, match=message):
    addresses.connect(address, DEADLINE_SECONDS)


def test_another_user_does_not():
  stream = mock.Mock(family=socket.AF_UNIX)
  # Process, user and group, as the kernel reports them.
  user = os.getuid()
  for peer, expected in ((user, True), (user + 1, False)):
    stream.getsockopt.return_value = struct.pack('3i', 1, peer, user)
    assert addresses.is_of_this_user(stream) == expected
