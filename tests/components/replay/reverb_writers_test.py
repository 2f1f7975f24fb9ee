"""Tests of writers to a replay server: order of items, and waits."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import adders, replay
from repertory.components.replay import packing
from repertory.components.runtime import signals
from support.replay import (
  recording_writer,
  replay_fixture,
  sequence_twin,
  transition_twin,
)
from support.system import rare_cases


@pytest.fixture(autouse=True)
def _no_threads_left():
  with replay_fixture.no_threads_left():
    yield


def _open(connection, num_alive=1, **settings):
  writer = replay_fixture.make_writer(connection, **settings)
  writer.open(num_alive)
  return writer


@pytest.fixture(name='connection')
def _connection():
  table = replay_fixture.make_fifo(replay_fixture.SIGNATURE)
  with replay_fixture.serve(table) as connection:
    yield connection


def _put(writer, *values):
  """Writes numbers, and waits as an adder does."""
  writer.put([np.array(values, np.int64)])
  if writer.is_ahead():
    writer.wait()


def _inserts(connection):
  return replay_fixture.table_status(connection).inserts


def _values(items):
  return [int(item.data['x']) for item in items]


def test_items_arrive_in_order_each_with_a_priority(connection):
  priorities = itertools.count(1)
  writer = _open(connection, priority=lambda: float(next(priorities)))
  _put(writer, 5, 3)
  assert (writer.num_items, _inserts(connection)) == (2, 2)
  _put(writer, 4)
  writer.close()
  items = replay_fixture.drain(connection)
  assert _values(items) == [5, 3, 4]
  assert [item.info.priority for item in items] == [1, 2, 3]


@pytest.mark.parametrize('priority', [float('nan'), float('inf'), -0.5])
def test_impossible_priorities_are_refused(connection, priority):
  writer = _open(connection, priority=lambda: priority)
  with pytest.raises(ValueError, match=f'priority .* {priority}'):
    _put(writer, 1)
  writer.close()
  assert writer.num_items == _inserts(connection) == 0


@pytest.mark.parametrize('end', ['flush', 'reset', 'close'])
def test_pending_items_arrive(connection, end):
  writer = _open(connection, max_pending_items=1000)
  for value in range(200):
    _put(writer, value)
  getattr(writer, end)()
  assert _inserts(connection) == writer.num_items == 200
  if end != 'close':
    writer.close()


# All leaves are packed, or 'image' is by itself.
_SIGNATURE = {
  'image': tf.TensorSpec([2000], tf.uint8),
  'number': tf.TensorSpec([], tf.int64),
}


def _image(number):
  return np.full([2000], number % 256, np.uint8)


def test_items_share_kept_arrays():
  """Shared arrays live as long as promised, and are sent only once."""
  with replay_fixture.serve(replay_fixture.make_fifo(_SIGNATURE)) as connection:
    writer = _open(connection, num_alive=3, max_pending_items=10)
    assert writer.shared == [0]
    kept = []
    for number in range(300):
      kept = [*kept, writer.keep([_image(number)])][-3:]
      # The oldest one alive.
      writer.put([None, np.array([number])], [kept[0]])
      if writer.is_ahead():
        writer.wait()
    writer.close()
    items = replay_fixture.drain(connection)
  assert len(items) == 300
  for number, item in enumerate(items):
    assert item.data['number'] == number
    expected = _image(max(0, number - 2))
    np.testing.assert_array_equal(item.data['image'], expected)


def test_shared_leaves_may_be_an_items_own():
  with replay_fixture.serve(replay_fixture.make_fifo(_SIGNATURE)) as connection:
    writer = _open(connection)
    writer.put([np.stack([_image(7), _image(8)]), np.array([7, 8])])
    writer.close()
    items = replay_fixture.drain(connection)
  for number, item in zip([7, 8], items, strict=True):
    assert item.data['number'] == number
    np.testing.assert_array_equal(item.data['image'], _image(number))


def test_a_reset_drops_kept_arrays():
  with replay_fixture.serve(replay_fixture.make_fifo(_SIGNATURE)) as connection:
    writer = _open(connection, num_alive=9)
    kept = writer.keep([_image(1)])
    writer.reset()
    writer.keep([_image(2)])
    with pytest.raises(ValueError, match='expired'):
      writer.put([None, np.array([1])], [kept])
    writer.close()
    assert _inserts(connection) == 0


def test_bundles_are_of_items_that_come_together():
  table = replay.queue(replay_fixture.SIGNATURE, 100).bundled(2)
  with replay_fixture.serve(table) as connection:
    writer = _open(connection, max_pending_items=3)
    writer.put([np.arange(2)])
    assert not writer.is_ahead()  # Two items are pending.
    writer.put([np.arange(2, 4)])
    assert writer.is_ahead()
    writer.wait()
    assert not writer.is_ahead()
    writer.put([np.arange(4, 10)])
    with pytest.raises(ValueError, match='bundle size 2'):
      writer.put([np.arange(3)])
    writer.close()
    status = replay.table_status(connection.client, [table])[table.name]
    assert writer.num_items == status.inserts == 10
    assert _values(replay_fixture.drain(connection)) == list(range(10))


class TestBackPressure:
  """With 1 sample per item and a buffer of 1, two items run ahead.

  Inserts wait above 1 · min_size + buffer = 2.
  """

  @pytest.fixture(name='make')
  def _make(self):
    rate_limit = replay.RateLimit(1.0, min_size=1, error_buffer=1.0)
    table = replay_fixture.make_fifo(
      replay_fixture.SIGNATURE, rate_limit=rate_limit
    )

    def make(timeout_seconds, max_pending_items=0, num_items=2):
      connection = replay.Connection(address, timeout_seconds)
      writer = _open(connection, max_pending_items=max_pending_items)
      for value in range(num_items):
        _put(writer, value)
      return connection, writer

    with replay_fixture.serve(table) as connection:
      address = connection.address
      yield make

  def test_time_out(self, make):
    connection, writer = make(0.3)
    message = rf"0\.3 seconds .*table 'replay' of .*{connection.address}"
    with pytest.raises(TimeoutError, match=message):
      replay_fixture.Call(_put, writer, 2).result()
    with pytest.raises(TimeoutError, match=message):
      writer.flush()
    connection.stop.set()
    with pytest.raises(signals.Stopped):
      writer.flush()
    writer.close()

  def test_stop_signal(self, make):
    connection, writer = make(60)
    call = replay_fixture.Call(_put, writer, 2)
    assert call.is_waiting()
    connection.stop.set()
    with pytest.raises(signals.Stopped):
      call.result(1)
    replay_fixture.Call(writer.close).result(1)

  def test_resumes_once_sampled(self, make):
    connection, writer = make(60)
    call = replay_fixture.Call(_put, writer, 2)
    assert call.is_waiting()
    assert _inserts(connection) == 2
    found = replay_fixture.sample(connection, 1)
    call.result()
    assert _inserts(connection) == 3
    found += replay_fixture.sample(connection, 1)
    _put(writer, 3)
    found += replay_fixture.sample(connection, 2)
    # No item was lost or duplicated.
    assert _values(found) == [0, 1, 2, 3]
    writer.close()

  def test_resumes_after_a_time_out(self, make):
    connection, writer = make(0.3)
    with pytest.raises(TimeoutError):
      _put(writer, 2)
    found = replay_fixture.sample(connection, 2)
    _put(writer, 3)
    found += replay_fixture.sample(connection, 2)
    assert _values(found) == [0, 1, 2, 3]
    writer.close()

  def test_close_that_times_out_still_closes(self, make):
    _, writer = make(0.3)
    with pytest.raises(TimeoutError):
      _put(writer, 2)
    with pytest.raises(TimeoutError):
      writer.close()
    with pytest.raises(RuntimeError, match='Close'):
      _put(writer, 3)

  def test_put_never_waits(self, make):
    """`put` returns at once, and `is_ahead` reports the delay."""
    connection, writer = make(60)
    for value in range(2, 5):
      replay_fixture.Call(writer.put, [np.array([value])]).result(1)
      assert replay_fixture.Call(writer.is_ahead).result(1)
    waiting = replay_fixture.Call(writer.wait)
    assert waiting.is_waiting()
    replay_fixture.sample(connection, 3)
    waiting.result()
    assert not writer.is_ahead()
    assert _inserts(connection) == 5
    writer.close()

  def test_some_may_be_pending(self, make):
    _, writer = make(0.3, max_pending_items=2, num_items=4)
    assert writer.num_items == 4
    with pytest.raises(TimeoutError):
      _put(writer, 4)
    with pytest.raises(TimeoutError):
      writer.close()


@pytest.mark.parametrize('max_pending_items', [0, 20])
@pytest.mark.parametrize('across_episodes', [False, True])
def test_sequences_are_as_in_memory(across_episodes, max_pending_items):
  random = np.random.default_rng(max_pending_items)
  sequences = sequence_twin.make_sequences(
    length=5, burn_in=1, period=2, across_episodes=across_episodes
  )
  histories = [
    sequence_twin.make_history(
      slot, [range(1, n + 1) for n in random.integers(1, 9, 300)], 300
    )
    for slot in (1, 2, 3)
  ]
  table = replay_fixture.make_fifo(sequences.signature(sequence_twin.SPEC))
  with replay_fixture.serve(table) as connection:
    writer = replay_fixture.make_writer(
      connection, max_pending_items=max_pending_items
    )
    adder = sequences.make_adder(writer, 3)
    sequence_twin.play(writer, adder, histories)
    adder.close()
    items = [item.data for item in replay_fixture.drain(connection)]
  sequence_twin.assert_equal(items, sequence_twin.record(sequences, histories))


@pytest.mark.parametrize('max_pending_items', rare_cases.daily([0, 20], [20]))
def test_transitions_are_as_in_memory(max_pending_items, monkeypatch):
  """Even if they share leaves, and slots end at very different times."""
  # Observations, forces and extras are large.
  monkeypatch.setattr(packing, '_MAX_PACKED_BYTES', 4)
  transitions = adders.Transitions(
    5, 0.9, extras_spec=transition_twin.EXTRAS_SPEC
  )
  signature = transitions.signature(transition_twin.SPEC)
  lengths = [1, 2, 5, 6, 41, 1000]

  def play(writer):
    slots = [
      transition_twin.Slot(i, [(np.ones(n), np.ones(n))] * (600 // n + 1))
      for i, n in enumerate(lengths)
    ]
    adder = transitions.make_adder(writer, len(slots))
    transition_twin.run(adder, slots, 600)
    adder.close()

  with replay_fixture.serve(replay_fixture.make_fifo(signature)) as connection:
    writer = replay_fixture.make_writer(
      connection, max_pending_items=max_pending_items
    )
    play(writer)
    items = [item.data for item in replay_fixture.drain(connection)]
  recording = recording_writer.RecordingWriter(signature, writer.shared)
  assert len(recording.shared) == 6
  play(recording)
  assert len(items) > 2000
  for found, expected in zip(items, recording.items, strict=True):
    tree.map_structure(np.testing.assert_array_equal, found, expected)
