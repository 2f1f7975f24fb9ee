"""Tests of `components/gossip/participant.py`, and of its links."""

import contextlib
import json
import socket
import struct
import threading
import time

import numpy as np
import pytest

from repertory.components.gossip import links, mixing, participant
from repertory.components.inference import addresses
from repertory.components.runtime import callers

_SECONDS = 30.0


def _arrays(value, size=3):
  return {'w': np.full([size], value, np.float32), 'n': np.asarray(1, np.int64)}


class _Network:
  """Participants that find each other's addresses."""

  def __init__(self, size):
    self.names = [f'learner/{i}' for i in range(size)]
    self.participants: dict[str, participant.Participant] = {}

  def add(self, index, generation=0, size=3):
    name = self.names[index]
    self.participants[name] = one = participant.Participant(
      _arrays(0.0, size),
      'ring',
      self.names,
      find=self.find,
      caller=callers.Caller(name, generation, 'token'),
    )
    return one

  def find(self, name):
    return (
      self.participants[name].address if name in self.participants else None
    )

  def close(self):
    for one in self.participants.values():
      one.close()


@pytest.fixture
def make_network():
  with contextlib.ExitStack() as stack:
    threads = threading.active_count()

    def make(size=2):
      network = _Network(size)
      stack.callback(network.close)
      return network

    yield make
    stack.close()
    assert threading.active_count() == threads, 'All threads must have ended.'


def _exchange_until(one, version, value, is_mixed):
  """Exchanges until a result passes a condition; returns it."""
  deadline = time.monotonic() + _SECONDS
  while time.monotonic() < deadline:
    mixed = one.exchange(version, _arrays(value))
    if mixed is not None and is_mixed(mixed):
      return mixed
    time.sleep(0.01)
  raise AssertionError('Nothing came.')


def test_missing_neighbors_block_nobody(make_network):
  one = make_network().add(0)
  for version in range(100):
    assert one.exchange(version, _arrays(version)) is None
  assert one.figures().age_seconds is None


def test_moves_to_the_mean_of_what_came(make_network):
  network = make_network()
  first, second = network.add(0), network.add(1)
  first.exchange(5, _arrays(4.0))
  mixed = _exchange_until(second, 7, 2.0, lambda mixed: True)
  np.testing.assert_array_equal(mixed['w'], [3, 3, 3])
  assert mixed['n'] == 1
  figures = second.figures()
  assert figures.age_steps == 2
  assert figures.age_seconds is not None and figures.age_seconds >= 0
  assert figures.num_messages > 0


def test_one_that_starts_again_is_found(make_network):
  network = make_network()
  first, second = network.add(0), network.add(1)
  second.exchange(1, _arrays(1.0))
  _exchange_until(first, 1, 0.0, lambda mixed: True)
  second.close()
  for version in range(2, 50):  # The other one continues meanwhile.
    first.exchange(version, _arrays(0.0))
  again = network.add(1, generation=1)
  again.exchange(1, _arrays(8.0))
  mixed = _exchange_until(first, 50, 0.0, lambda mixed: mixed['w'][0] == 4)
  assert mixed['w'].tolist() == [4, 4, 4]
  first.exchange(51, _arrays(6.0))
  _exchange_until(again, 2, 2.0, lambda mixed: mixed['w'][0] == 4)


def test_other_variables_are_refused(make_network):
  network = make_network()
  network.add(1)
  one = network.add(0, size=4)
  deadline = time.monotonic() + _SECONDS
  with pytest.raises(links.RefusedLinkError, match='learner/0 must send the'):
    while time.monotonic() < deadline:
      one.exchange(1, _arrays(0.0, size=4))
      time.sleep(0.01)


@contextlib.contextmanager
def _inlet():
  layout = mixing.VectorLayout(_arrays(0.0))
  inlet = links.Inlet(['a'], layout, callers.Fencing('token'))
  try:
    yield inlet, layout
  finally:
    inlet.close()


def _greet(inlet, **changes):
  """Connects a raw socket; returns the stream and the answer."""
  stream = addresses.connect(inlet.address, _SECONDS)
  text = json.dumps(
    {'name': 'a', 'generation': 0, 'token': 'token', 'digest': '', **changes}
  ).encode()
  stream.sendall(text + b'\n')
  return stream, stream.makefile('rb').readline().decode()


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'token': 'stolen'}, 'token of this run'),
    ({'generation': 'old'}, 'must begin with a JSON object'),
    ({'name': 'z'}, "must be one of ['a'], got 'z'"),
    ({'digest': 'other'}, 'must send the variables that are mixed here'),
  ],
)
def test_strangers_are_refused(changes, message):
  with _inlet() as (inlet, _):
    stream, answer = _greet(inlet, **changes)
    assert message in answer
    assert stream.recv(1) == b''
    stream.close()
    assert inlet.num_messages == 0


def test_nonsense_ends_its_link_alone():
  with _inlet() as (inlet, layout):
    good, _ = _greet(inlet, digest=layout.digest)
    good.sendall(struct.pack('<4sqQ', b'gssp', 3, 12) + bytes(12))
    _wait(lambda: inlet.num_messages == 1)
    bad = addresses.connect(inlet.address, _SECONDS)
    bad.sendall(b'\xff' * 64 + b'\n')
    answer = bad.makefile('rb').read().decode()
    assert 'must begin with a JSON object' in answer
    bad.close()
    good.sendall(struct.pack('<4sqQ', b'gssp', 4, 12) + bytes(12))
    _wait(lambda: inlet.num_messages == 2)
    # Only the newest is kept, and read once.
    assert [message.version for message in inlet.take_unread()] == [4]
    assert inlet.take_unread() == []
    # Messages of another length are refused, too.
    good.sendall(struct.pack('<4sqQ', b'gssp', 5, 1 << 40))
    _check_ended(good)
    good.close()


def test_slow_handshakes_are_refused(monkeypatch):
  monkeypatch.setattr(links, 'TIMEOUT_SECONDS', 0.5)
  with _inlet() as (inlet, _):
    slow = addresses.connect(inlet.address, _SECONDS)
    deadline = time.monotonic() + _SECONDS
    with pytest.raises(OSError, match=r'pipe|reset'):
      while time.monotonic() < deadline:
        slow.sendall(b' ')  # Each byte comes soon after the previous one.
        time.sleep(0.01)
    slow.close()


def _check_ended(stream):
  with contextlib.suppress(ConnectionError):
    assert stream.recv(1) == b''


def _wait(condition):
  deadline = time.monotonic() + _SECONDS
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.01)


def test_a_neighbor_that_reads_nothing_blocks_nobody():
  listener, address = addresses.listen(addresses.make_address())
  listener.setblocking(True)
  layout = mixing.VectorLayout({'w': np.zeros([1 << 20], np.float32)})
  outlet = links.Outlet(
    'b', lambda: address, callers.Caller('a', 0, 'token'), layout
  )
  stream, _ = listener.accept()
  stream.makefile('rb').readline()
  stream.sendall(b'""\n')
  vector = np.zeros([1 << 20], np.float32)
  # 4 GB that are never read: sending them would block for ever.
  for version in range(1000):
    outlet.put(version, vector)
  stream.shutdown(socket.SHUT_RDWR)
  stream.close()
  listener.close()
  outlet.close()
