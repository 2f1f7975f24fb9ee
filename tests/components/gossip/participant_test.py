"""Tests of `components/gossip/participant.py`, and of its links."""

import contextlib
import json
import struct
import threading
import time

import numpy as np
import pytest

from repertory.components.gossip import participant
from repertory.components.network import addresses, callers

_SECONDS = 30.0


def _arrays(value):
  return {'w': np.full([3], value, np.float32), 'n': np.asarray(1, np.int64)}


@pytest.fixture(name='add')
def _add():
  """Adds participants that find each other's addresses."""
  threads, made = threading.active_count(), {}

  def add(index, generation=0):
    names = ['learner/0', 'learner/1']
    made[names[index]] = one = participant.Participant(
      _arrays(0.0),
      'ring',
      names,
      find=lambda name: made[name].address if name in made else None,
      caller=callers.Caller(names[index], generation, 'token'),
    )
    return one

  yield add
  for one in made.values():
    one.close()
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


def test_moves_to_the_mean_of_what_came(add):
  first = add(0)
  for version in range(100):  # Missing neighbors block nobody.
    assert first.exchange(version, _arrays(version)) is None
  assert first.age_seconds is None
  second = add(1)
  first.exchange(105, _arrays(4.0))
  mixed = _exchange_until(second, 107, 2.0, lambda mixed: mixed['w'][0] == 3)
  np.testing.assert_array_equal(mixed['w'], [3, 3, 3])
  assert mixed['n'] == 1
  assert second.age_steps == 2 and second.age_seconds >= 0
  assert second.num_messages > 0


def test_one_that_starts_again_is_found(add):
  first, second = add(0), add(1)
  second.exchange(1, _arrays(1.0))
  _exchange_until(first, 1, 0.0, lambda mixed: True)
  second.close()
  for version in range(2, 50):  # The other one continues meanwhile.
    first.exchange(version, _arrays(0.0))
  again = add(1, generation=1)
  again.exchange(1, _arrays(8.0))
  _exchange_until(first, 50, 0.0, lambda mixed: mixed['w'][0] == 4)
  first.exchange(51, _arrays(6.0))
  _exchange_until(again, 2, 2.0, lambda mixed: mixed['w'][0] == 4)


@pytest.fixture(name='alone')
def _alone():
  """One whose only neighbor, 'a', does not listen."""
  made = participant.Participant(
    _arrays(0.0), 'ring', ['a', 'b'], find=lambda name: None,
    caller=callers.Caller('b', 0, 'token'),
  )  # fmt: skip
  yield made
  made.close()


def _greet(receiver, **changes):
  """Connects a raw socket, and sends a caller identity."""
  stream = addresses.connect(receiver.address, _SECONDS)
  text = json.dumps(
    {'name': 'a', 'generation': 0, 'token': 'token', **changes}
  ).encode()
  stream.sendall(text + b'\n')
  return stream


@pytest.mark.parametrize(
  'changes',
  [{'token': 'stolen'}, {'generation': 'old'}, {'name': 'z'}, {'more': [0]}],
)
def test_links_of_strangers_are_closed(alone, changes):
  with contextlib.closing(_greet(alone, **changes)) as stream:
    _check_ended(stream)
  assert alone.num_messages == 0


def _message(version, value):
  vector = np.full([3], value, np.float32).tobytes()
  return struct.pack('<qQ', version, len(vector)) + vector


def test_nonsense_ends_its_link_alone(alone):
  with contextlib.closing(_greet(alone)) as good:
    good.sendall(_message(3, 7.0))
    _wait(lambda: alone.num_messages == 1)
    with contextlib.closing(_greet(alone, name='\0')) as bad:
      _check_ended(bad)
    good.sendall(_message(4, 8.0))
    _wait(lambda: alone.num_messages == 2)
    # Only the newest is kept, and mixed in once.
    assert alone.exchange(6, _arrays(0.0))['w'][0] == 4
    assert alone.age_steps == 2
    assert alone.exchange(7, _arrays(0.0)) is None
    # Messages of another length are refused, too.
    good.sendall(struct.pack('<qQ', 5, 1 << 40))
    _check_ended(good)


def test_silent_handshakes_are_refused(alone, monkeypatch):
  monkeypatch.setattr(participant, 'TIMEOUT_SECONDS', 0.2)
  with contextlib.closing(addresses.connect(alone.address, _SECONDS)) as silent:
    _check_ended(silent)


def _check_ended(stream):
  with contextlib.suppress(ConnectionError):
    assert stream.recv(1) == b''


def _wait(condition):
  deadline = time.monotonic() + _SECONDS
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.01)


def test_a_neighbor_that_reads_nothing_blocks_nobody():
  listener, address = addresses.listen()
  listener.setblocking(True)
  arrays = {'w': np.zeros([1 << 20], np.float32)}
  sender = participant.Participant(
    arrays, 'ring', ['a', 'b'], find=lambda name: address,
    caller=callers.Caller('a', 0, 'token'),
  )  # fmt: skip
  stream, _ = listener.accept()
  stream.makefile('rb').readline()
  # 400 MB that are never read: sending them would block for ever.
  for version in range(100):
    sender.exchange(version, arrays)
  sender.close()
  stream.close()
  listener.close()
