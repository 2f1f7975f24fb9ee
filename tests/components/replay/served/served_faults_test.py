"""Tests of clients of a replay server that fail, and of lost servers."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest
import tensorflow as tf

from repertory.components import replay
from repertory.components.network import addresses, client_stream, frames
from repertory.components.replay import served
from repertory.components.replay.local import snapshots
from repertory.components.replay.served import connection as connection_lib
from repertory.components.replay.served import protocol
from repertory.components.runtime import signals
from support.replay import replay_fixture
from support.system import calls

_SECONDS = replay_fixture.DEADLINE_SECONDS
_TOKEN = 'secret'
_SIGNATURE = {
  'image': tf.TensorSpec([40, 40], tf.uint8),
  'number': tf.TensorSpec([], tf.int64),
}
_TABLE = replay.prioritized(
  _SIGNATURE, 1000, replay_fixture.NO_LIMIT, priority_exponent=1.0
)

_SERVER_SOURCE = """
import sys
import served_faults_test as test
from repertory.components.replay import served
from repertory.components.replay.local import snapshots

server = served.ReplayServer([test._TABLE], 0, token=test._TOKEN)
print(server.address, flush=True)
sys.stdin.read()  # Ends when the test ends, however that comes about.
"""


@pytest.fixture(name='server')
def _server(tmp_path):
  with replay_fixture.no_threads_left():
    server = served.ReplayServer(
      [_TABLE], 0, checkpoint_directory=str(tmp_path), token=_TOKEN
    )
    yield server
    calls.Call(server.stop).result(_SECONDS)


def _connect(address, **settings):
  settings = {'timeout_seconds': _SECONDS, 'token': _TOKEN, **settings}
  return served.ServerConnection(address, **settings)


@contextlib.contextmanager
def _open_writer(connection, **settings):
  writer = served.ServedWriter(connection, _TABLE, **settings)
  writer.open(1)
  try:
    yield writer
  finally:
    connection.stop.set()
    writer.close()


def _items(*numbers):
  column = np.array(numbers, np.int64)
  images = np.broadcast_to(
    column[:, np.newaxis, np.newaxis].astype(np.uint8), [len(numbers), 40, 40]
  )
  return [images, column]


def _insert(address, *numbers):
  with _open_writer(_connect(address)) as writer:
    writer.put(_items(*numbers))
    writer.flush()


def _speak(address, *data):
  """Opens a connection for a purpose, and sends bytes after its handshake."""
  purpose, *rest = data
  stream = addresses.connect(address, _SECONDS)
  stream.sendall(
    frames.pack_json(frames.HELLO, protocol.hello(purpose, _TOKEN, _TABLE))
  )
  welcome = stream.recv(frames.HEADER_SIZE)
  assert frames.parse_header(welcome)[0] == frames.WELCOME
  for some in rest:
    stream.sendall(some)
  return stream


def _read_reason(stream):
  """Returns why the server ends a connection."""
  with stream, stream.makefile('rb') as opened:
    kind, size, _ = frames.parse_header(opened.read(frames.HEADER_SIZE))
    assert kind == frames.REFUSED
    reason = json.loads(opened.read(size))['reason']
    assert opened.read() == b''
  return reason


def _pack_priorities(*priorities):
  keys = np.zeros(len(priorities), np.uint64)
  data = keys.tobytes() + np.array(priorities, np.float64).tobytes()
  return frames.header(protocol.PRIORITIES, len(data)) + data


def _pack_items(priority, number=0):
  _, column = _items(1)
  return protocol.pack_items(
    0,
    np.array([priority]),
    _TABLE.packing.pack([None, column]),
    np.array([[number]], np.uint64),
  )


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'token': 'wrong'}, "must have the token of this run, got another run's"),
    ({'protocol': 99}, 'protocol must be 1, got 99'),
    ({'purpose': 'other'}, "purpose must be known, got 'other'"),
    ({'table': 'other'}, "table must be replay, got 'other'"),
    ({'signature': []}, r"signature of table 'replay' must be .*, got \[\]"),
    (
      {'purpose': protocol.SAMPLE, 'batch_size': 0},
      'must be at least 1, got 0',
    ),
  ],
)
def test_handshakes_are_checked(server, changes, message):
  hello = protocol.hello(protocol.WRITE, _TOKEN, _TABLE) | changes
  with pytest.raises(frames.ProtocolError, match=message):
    client_stream.ClientStream(
      server.address,
      hello,
      server='replay server',
      timeout_seconds=_SECONDS,
      stop=signals.StopSignal(),
    )


@pytest.mark.parametrize(
  ('purpose', 'data', 'message'),
  [
    (
      protocol.WRITE,
      frames.header(protocol.ITEMS, 2**32 - 1),
      'of at most 268435456 bytes',
    ),
    (protocol.WRITE, frames.header(77, 0), 'a frame of kind 77 with 0'),
    (protocol.WRITE, frames.header(protocol.ITEMS, 3) + b'abc', '16 bytes or'),
    (
      protocol.WRITE,
      frames.header(protocol.ITEMS, 16) + (2**40).to_bytes(16, 'little'),
      'items of table',
    ),
    (protocol.WRITE, _pack_items(float('nan')), 'must be finite'),
    (protocol.WRITE, _pack_items(-1.0), 'not negative'),
    (
      protocol.WRITE,
      _pack_items(1.0, 7),
      'arrays that are alive, got number 7',
    ),
    (
      protocol.WRITE,
      b''.join(protocol.pack_arrays(0, [np.zeros(1601, np.uint8)])),
      'of 1600 bytes must not be stored in 1601',
    ),
    (
      protocol.WRITE,
      b''.join(protocol.pack_arrays(1, [np.zeros(1, np.int64)])),
      r'must be of the leaves \[0\], got 1 of 1',
    ),
    (protocol.PRIORITIES_OF, _pack_priorities(float('inf')), 'must be finite'),
    (protocol.PRIORITIES_OF, _pack_priorities(-0.5), 'not negative'),
    (protocol.PRIORITIES_OF, frames.header(protocol.PRIORITIES, 8), '16 bytes'),
    (protocol.SAMPLE, frames.header(protocol.ASK, 0), 'kind 13, got kind 17'),
  ],
)
def test_wrong_frames_end_only_their_connection(server, purpose, data, message):
  _insert(server.address, 1)
  if purpose == protocol.SAMPLE:
    hello = protocol.hello(purpose, _TOKEN, _TABLE, batch_size=1)
    stream = addresses.connect(server.address, _SECONDS)
    stream.sendall(frames.pack_json(frames.HELLO, hello))
    stream.recv(frames.HEADER_SIZE)
    stream.sendall(data)
  else:
    stream = _speak(server.address, purpose, data)
  assert message.replace('\\', '') in _read_reason(stream)
  _insert(server.address, 2)
  status = _connect(server.address).look(_TABLE)
  assert (status.inserts, status.size) == (2, 2)


def test_clients_that_end_in_the_middle_of_a_frame(server):
  whole = _pack_items(1.0)
  for end in (3, frames.HEADER_SIZE, len(whole) - 1):
    _speak(server.address, protocol.WRITE, whole[:end]).close()
  _insert(server.address, 5)
  assert _connect(server.address).look(_TABLE).inserts == 1


def test_writer_that_is_gone_leaves_what_it_has_written(server):
  arrays = protocol.pack_arrays(0, [_items(3)[0][0]])
  stream = _speak(server.address, protocol.WRITE, *arrays, _pack_items(1.0))
  connection = _connect(server.address)
  replay_fixture.wait_until(
    lambda: connection.look(_TABLE).inserts == 1, 'the item'
  )
  stream.sendall(b''.join(protocol.pack_arrays(0, [_items(4)[0][0]])))
  stream.close()
  batches = served.ServedBatches(connection, _TABLE, 4)
  with contextlib.closing(batches):
    data = replay_fixture.Call(next, batches).result().data
  assert data['number'].tolist() == [1] * 4
  np.testing.assert_array_equal(data['image'], _items(*[3] * 4)[0])


def test_disk_that_is_full_is_named(server, monkeypatch):
  def fail(directory, contents):
    del directory, contents
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(snapshots, 'write', fail)
  wait = _connect(server.address).take_snapshot()
  message = 'could not write a snapshot: .*No space left'
  with pytest.raises(replay.ReplayCheckpointError, match=message):
    replay_fixture.Call(wait).result()
  _insert(server.address, 1)  # It is otherwise healthy.


class TestLostServer:
  @pytest.fixture(name='process')
  def _process(self, monkeypatch):
    monkeypatch.setattr(connection_lib, '_GRACE_SECONDS', 0.5)
    process = subprocess.Popen(
      [sys.executable, '-c', _SERVER_SOURCE],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      env=os.environ | {'PYTHONPATH': os.pathsep.join(filter(None, sys.path))},
      text=True,
    )
    with replay_fixture.no_threads_left(), process:
      yield process
      process.kill()

  def test_all_its_clients_name_it(self, process):
    address = calls.Call(process.stdout.readline).result(60).strip()
    connection = _connect(address)
    connection.statuses()
    writer = served.ServedWriter(connection, _TABLE)
    writer.open(1)
    writer.put(_items(1, 2))
    writer.flush()
    batches = served.ServedBatches(connection, _TABLE, 2, prefetch=0)
    keys = next(batches).keys
    priorities = served.ServedPriorities(connection, _TABLE, 0.1)
    process.send_signal(signal.SIGSTOP)
    replay_fixture.wait_until(
      lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED,
      'the stop of the server',
    )
    waiting = replay_fixture.Call(next, batches)
    assert waiting.is_waiting()
    process.kill()

    def write():
      while True:
        writer.put(_items(3))
        writer.flush()

    def update():
      while True:
        priorities.update(keys, np.ones(2))

    message = f'replay server at {address} ended the connection'
    for call in (
      waiting,
      replay_fixture.Call(write),
      replay_fixture.Call(update),
      replay_fixture.Call(connection.statuses),
    ):
      with pytest.raises(client_stream.ServerLost, match=message):
        call.result()
    with pytest.raises(client_stream.ServerLost, match='No replay server'):
      connection.look(_TABLE)
    with pytest.raises(client_stream.ServerLost):
      replay_fixture.Call(writer.close).result()
    for part in (batches, priorities):
      replay_fixture.Call(part.close).result()

  def test_stop_comes_before_the_error(self, process, monkeypatch):
    monkeypatch.setattr(connection_lib, '_GRACE_SECONDS', _SECONDS)
    address = calls.Call(process.stdout.readline).result(60).strip()
    connection = _connect(address)
    batches = served.ServedBatches(connection, _TABLE, 2)
    waiting = replay_fixture.Call(next, batches)
    process.kill()
    assert waiting.is_waiting()
    connection.stop.set()
    with pytest.raises(signals.Stopped):
      waiting.result()
    batches.close()


def test_end_of_the_server_ends_all_waits(server, monkeypatch):
  monkeypatch.setattr(connection_lib, '_GRACE_SECONDS', 0.0)
  batches = served.ServedBatches(_connect(server.address), _TABLE, 2)
  waiting = replay_fixture.Call(next, batches)
  assert waiting.is_waiting()
  replay_fixture.Call(server.stop).result()
  with pytest.raises(client_stream.ServerLost):
    waiting.result()
  batches.close()
