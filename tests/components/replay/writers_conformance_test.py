"""Tests of the contract of `replay.Writer`, for each kind of writer."""

import contextlib
import itertools

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import replay
from repertory.components.replay import local, served
from repertory.components.runtime import signals
from support.replay import replay_fixture
from support.system import calls

# The leaves of an item, in this order: two large enough to be shared, and a
# small one.
_SIGNATURE = {
  'image': tf.TensorSpec([2000], tf.uint8),
  'mask': tf.TensorSpec([1500], tf.uint8),
  'number': tf.TensorSpec([], tf.int64),
}

# A call still running after this time counts as waiting.
_MOMENT_SECONDS = 0.3


class WriterConformance:
  """The contract of `replay.Writer`.

  Subclasses have a context `serve(table)` that yields a queue, with the methods
  `make_writer`, `count` of the items inserted so far, and `take`, which returns
  items in the order of insertion, each with its priority.

  Attributes:
    deadline_seconds: Time after which a call counts as hanging.
  """

  deadline_seconds = 60.0

  @contextlib.contextmanager
  def open(self, max_size=1000, bundle_size=1, **settings):
    """Yields a table and an opened writer to it."""
    with calls.no_threads_left(self.deadline_seconds):
      table = replay.queue(_SIGNATURE, max_size).bundled(bundle_size)
      with (
        self.serve(table) as served,
        self.closing(served, **settings) as writer,
      ):
        yield served, writer

  @contextlib.contextmanager
  def closing(self, served, num_alive=1, **settings):
    """Yields an opened writer, and closes it even if the table is full."""
    stop = signals.StopSignal()
    settings = {'timeout_seconds': self.deadline_seconds, **settings}
    writer = served.make_writer(stop=stop, **settings)
    writer.open(num_alive)
    try:
      yield writer
    finally:
      stop.set()
      self.call(writer.close)

  def call(self, function, *args):
    """Calls a function that may block, with the deadline."""
    return calls.Call(function, *args).result(self.deadline_seconds)

  def write(self, writer, *numbers):
    """Puts items, which must not block, and then waits as an adder does."""
    self.call(writer.put, _leaves(numbers))
    if writer.is_ahead():
      self.call(writer.wait)

  def test_items_come_in_order_each_with_a_priority(self):
    priorities = itertools.count(1)
    with self.open(priority=lambda: float(next(priorities))) as (table, writer):
      self.write(writer, 5, 3)
      self.write(writer, 4)
      # Without pending items, the table has all items after a wait.
      assert writer.num_items == table.count() == 3
      taken = table.take(3)
    _check(taken, [5, 3, 4])
    assert [priority for _, priority in taken] == [1, 2, 3]

  def test_what_is_put_may_be_changed_afterwards(self):
    with self.open(num_alive=9, max_pending_items=9) as (table, writer):
      leaves = _leaves([1])
      self.call(writer.put, leaves)
      for leaf in leaves:
        leaf[:] = 99
      leaves = dict(enumerate(_leaves([2])))
      references = writer.keep({i: leaves[i] for i in writer.shared})
      for i in writer.shared:
        leaves[i][:] = 99
      self.call(writer.put, list({**leaves, **references}.values()))
      self.call(writer.flush)
      taken = table.take(2)
    _check(taken, [1, 2])

  def test_other_leaves_are_refused(self):
    with self.open() as (table, writer):
      *images, _ = _leaves([1])
      match = r"'number' must be int64 of shape \(\) .*; got int"
      for number in (np.array([1], np.int32), np.array([[1]], np.int64)):
        self._check_refusal(writer, [*images, number], match)
      assert table.count() == 0

  def test_impossible_priorities_are_refused(self):
    for priority in (float('nan'), float('inf'), -0.5):
      with self.open(priority=lambda p=priority: p) as (table, writer):
        self._check_refusal(writer, _leaves([1]), 'must be finite')
        assert table.count() == 0

  def _check_refusal(self, writer, leaves, match):
    with pytest.raises(ValueError, match=match):
      self.call(writer.put, leaves)
    assert writer.num_items == 0

  def test_all_comes_before_it_flushes_or_closes(self):
    for end in ('flush', 'close'):
      with (
        calls.no_threads_left(self.deadline_seconds),
        self.serve(replay.queue(_SIGNATURE, 1000)) as table,
      ):
        writer = table.make_writer(
          self.deadline_seconds, signals.StopSignal(), max_pending_items=1000
        )
        writer.open(1)
        for number in range(100):
          self.write(writer, number)
        self.call(getattr(writer, end))
        found = table.count()
        if end != 'close':
          self.write(writer, 100)
          self.call(writer.close)
        taken = table.take(table.count())
      assert found == 100, end
      _check(taken, range(100 if end == 'close' else 101))

  def test_items_refer_to_what_is_kept(self):
    with self.open(num_alive=3, max_pending_items=10) as (table, writer):
      shared, kept = list(writer.shared), []
      for number in range(60):
        leaves = dict(enumerate(_leaves([number])))
        # Leaves of one step may come one after the other.
        parts = [writer.keep({i: leaves[i]}) for i in shared]
        kept = [*kept, {**parts[0], **parts[1]}][-3:]
        # The oldest that is alive.
        self.call(writer.put, list({**leaves, **kept[0]}.values()))
        if writer.is_ahead():
          self.call(writer.wait)
      self.call(writer.flush)
      items = [item for item, _ in table.take(60)]
    for number, item in enumerate(items):
      older = max(0, number - 2)
      for i, (name, leaf) in enumerate(zip(_SIGNATURE, _leaves([number]))):
        expected = _leaves([older])[i] if i in shared else leaf
        np.testing.assert_array_equal(
          np.asarray(item[name]), expected[0], f'{name!r} of item {number}'
        )

  def test_some_may_be_pending(self):
    with self.open(max_size=2, max_pending_items=2) as (table, writer):
      for number in range(4):
        self.write(writer, number)
      self.call(writer.put, _leaves([4]))
      assert writer.is_ahead()
      waiting = calls.Call(writer.wait)
      assert waiting.is_waiting(_MOMENT_SECONDS)
      taken = [*table.take(2)]
      waiting.result(self.deadline_seconds)  # Half of two may be left.
      calls.wait_until(
        lambda: table.count() == 4, 'two more', self.deadline_seconds
      )
      taken += table.take(2)
      self.call(writer.flush)
      taken += table.take(1)
    _check(taken, range(5))

  def test_wait_ends_after_its_time(self):
    with self.open(max_size=2) as (table, patient):
      self.write(patient, 0, 1)
      writer = table.make_writer(0.2, signals.StopSignal())
      writer.open(1)
      self.call(writer.put, _leaves([2]))
      for name in ('wait', 'flush', 'close'):
        with pytest.raises(TimeoutError, match=r'0\.2'):
          self.call(getattr(writer, name))

  def test_continues_after_a_time_out(self):
    with self.open(max_size=2) as (table, patient):
      self.write(patient, 0, 1)
      with self.closing(table, timeout_seconds=0.2) as writer:
        self.call(writer.put, _leaves([2]))
        with contextlib.suppress(TimeoutError):
          self.call(writer.wait)
        taken = [*table.take(2)]
        calls.wait_until(
          lambda: table.count() == 3, 'the item', self.deadline_seconds
        )
        taken += table.take(1)

        def is_flushed() -> bool:
          with contextlib.suppress(TimeoutError):
            self.call(writer.flush)
            return True
          return False

        calls.wait_until(is_flushed, 'a flush', self.deadline_seconds)
        assert table.count() == 3
    _check(taken, range(3))

  def test_stop_ends_a_wait(self):
    stop = signals.StopSignal()
    table = replay.queue(_SIGNATURE, 1)
    with (
      calls.no_threads_left(self.deadline_seconds),
      self.serve(table) as served,
    ):
      writer = served.make_writer(10 * self.deadline_seconds, stop)
      writer.open(1)
      self.write(writer, 0)
      self.call(writer.put, _leaves([1]))
      waiting = calls.Call(writer.wait)
      assert waiting.is_waiting(_MOMENT_SECONDS)
      stop.set()
      with pytest.raises(signals.Stopped):
        waiting.result(self.deadline_seconds)
      self.call(writer.close)  # It does not wait for room.


def _leaves(numbers):
  """Returns the leaves of items, each made of its number."""
  column = np.array(numbers, np.int64)
  return [
    np.repeat(column[:, np.newaxis].astype(np.uint8), 2000, 1),
    np.repeat(column[:, np.newaxis].astype(np.uint8) + 1, 1500, 1),
    column,
  ]


def _check(taken, numbers):
  """Compares items with the expected ones."""
  assert [int(item['number']) for item, _ in taken] == [*numbers]
  for (item, _), number in zip(taken, numbers):
    for name, leaf in zip(_SIGNATURE, _leaves([number])):
      np.testing.assert_array_equal(
        np.asarray(item[name]), leaf[0], f'{name!r} of item {number}'
      )


class _ReverbTable:
  """A table of a replay server."""

  def __init__(self, connection):
    self._connection = connection
    self._table = replay_fixture.table_of(connection)

  def make_writer(self, timeout_seconds, stop, **settings):
    address = self._connection.address
    connection = replay.Connection(address, timeout_seconds, stop)
    return replay.ReverbWriter(connection, self._table, **settings)

  def count(self):
    tables = [self._table]
    status = replay.table_status(self._connection.client, tables)
    return status[self._table.name].inserts

  def take(self, num_items):
    num_bundles = num_items // self._table.bundle_size
    items = replay_fixture.sample(self._connection, num_bundles)
    return [(item.data, item.info.priority) for item in items]


class TestReverbWriter(WriterConformance):
  def test_bundles_are_of_items_that_come_together(self):
    with self.open(bundle_size=2, max_pending_items=3) as (table, writer):
      self.call(writer.put, _leaves([0, 1]))
      assert not writer.is_ahead()
      self.call(writer.put, _leaves([2, 3]))
      assert writer.is_ahead()
      self.call(writer.wait)
      assert not writer.is_ahead()
      self.write(writer, 4, 5, 6, 7)
      with pytest.raises(ValueError):
        self.call(writer.put, _leaves([8, 9, 10]))
      self.call(writer.flush)
      assert (writer.num_items, table.count()) == (8, 8)
      taken = table.take(8)
    _check(taken, range(8))

  @contextlib.contextmanager
  def serve(self, table):
    with replay_fixture.serve(table) as connection:
      yield _ReverbTable(connection)


class _ServedTable:
  """A table of a replay server of this package."""

  def __init__(self, address, table):
    self._address = address
    self._table = table

  def make_writer(self, timeout_seconds, stop, **settings):
    connection = served.ServerConnection(self._address, timeout_seconds, stop)
    return served.ServedWriter(connection, self._table, **settings)

  def count(self):
    return served.ServerConnection(self._address).look(self._table).inserts

  def take(self, num_items):
    connection = served.ServerConnection(self._address)
    batches = served.ServedBatches(
      connection, self._table, num_items, prefetch=0
    )
    with contextlib.closing(batches):
      sample = next(batches)
    rows = zip(*(sample.data[name] for name in _SIGNATURE), strict=True)
    return [
      (dict(zip(_SIGNATURE, row)), 1 + key)
      for row, key in zip(rows, sample.keys.tolist())
    ]


class TestServedWriter(WriterConformance):
  @contextlib.contextmanager
  def serve(self, table):
    server = served.ReplayServer([table], seed=0)
    try:
      yield _ServedTable(server.address, table)
    finally:
      server.stop()


class _LocalTable:
  """A table of this process."""

  def __init__(self, table):
    self._table = local.Table(table, seed=0)

  def make_writer(self, timeout_seconds, stop, **settings):
    place = local.WaitPolicy(timeout_seconds, stop)
    return local.LocalWriter(self._table, place, **settings)

  def count(self):
    return self._table.status().inserts

  def take(self, num_items):
    size = self._table.status().size
    priorities = self._table.copy().items.priorities[:num_items]
    assert size >= num_items
    data = self._table.sample(num_items, 0).data
    rows = zip(*(data[name] for name in sorted(data)), strict=True)
    return [
      (dict(zip(sorted(data), row)), priority)
      for row, priority in zip(rows, priorities)
    ]


class TestLocalWriter(WriterConformance):
  @contextlib.contextmanager
  def serve(self, table):
    yield _LocalTable(table)
