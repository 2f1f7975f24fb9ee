"""Tests that writers pass all checks, and that each check can fail."""

import contextlib
import time

import numpy as np
import pytest

from repertory.components import replay, testing
from repertory.components.replay import local
from support.replay import recording_writer, replay_fixture


class _ReverbTable(testing.ServedTable):
  """A table of a replay server."""

  def __init__(self, connection, writer_class=replay.ReverbWriter):
    self._connection = connection
    self._table = replay_fixture.table_of(connection)
    self._writer_class = writer_class

  def make_writer(self, timeout_seconds, stop, **settings):
    address = self._connection.address
    connection = replay.Connection(address, timeout_seconds, stop)
    return self._writer_class(connection, self._table, **settings)

  def count(self):
    tables = [self._table]
    status = replay.table_status(self._connection.client, tables)
    return status[self._table.name].inserts

  def take(self, num_items):
    num_bundles = num_items // self._table.bundle_size
    items = replay_fixture.sample(self._connection, num_bundles)
    return [(item.data, item.info.priority) for item in items]


class _ReverbWriters(testing.WriterConformance):
  writer_class: type[replay.Writer] = replay.ReverbWriter

  @contextlib.contextmanager
  def serve(self, table):
    with replay_fixture.serve(table) as connection:
      yield _ReverbTable(connection, self.writer_class)


class TestReverbWriter(_ReverbWriters):
  pass


class _Records(testing.ServedTable):
  """Items of a recording writer."""

  def __init__(self, table, shared, writer_class):
    self._table = table
    self._shared = shared
    self._writer_class = writer_class
    self._taken = 0

  def make_writer(self, timeout_seconds, stop, **settings):
    self._writer = self._writer_class(
      self._table.signature,
      shared=self._shared,
      bundle_size=self._table.bundle_size,
      **settings,
    )
    return self._writer

  def count(self):
    return len(self._writer.items)

  def take(self, num_items):
    begin, self._taken = self._taken, self._taken + num_items
    writer = self._writer
    pairs = zip(writer.items, writer.priorities, strict=True)
    return [*pairs][begin : self._taken]


class _RecordingWriters(testing.WriterConformance):
  is_held_back = False
  writer_class: type[replay.Writer] = recording_writer.RecordingWriter

  @contextlib.contextmanager
  def serve(self, table):
    yield _Records(table, (0, 1), self.writer_class)


class TestRecordingWriter(_RecordingWriters):
  pass


class _LocalTable(testing.ServedTable):
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
    priorities = self._table.copy().priorities[:num_items]
    assert size >= num_items
    data = self._table.sample(num_items, 0).data
    rows = zip(*(data[name] for name in sorted(data)), strict=True)
    return [
      (dict(zip(sorted(data), row)), priority)
      for row, priority in zip(rows, priorities)
    ]


class TestLocalWriter(testing.WriterConformance):
  test_bundles_are_of_items_that_come_together = None  # It has no bundles.

  @contextlib.contextmanager
  def serve(self, table):
    yield _LocalTable(table)


class _Backwards(recording_writer.RecordingWriter):
  def put(self, leaves, references=None):
    super().put([leaf[::-1] for leaf in leaves], references)


class _KeepsViews(recording_writer.RecordingWriter):
  def keep(self, leaves):
    references = super().keep(leaves)
    for reference, leaf in zip(references, leaves):
      if reference is not None:
        reference.leaf = leaf
    return references


class _Casting(recording_writer.RecordingWriter):
  def put(self, leaves, references=None):
    *images, numbers = leaves
    numbers = np.asarray(numbers, np.int64).reshape([len(numbers)])
    super().put([*images, numbers], references)


class _LosesTheLast(recording_writer.RecordingWriter):
  """Writes an item when the next one comes."""

  _open: tuple = ()

  def _insert(self, priority, item):
    if self._open:
      super()._insert(*self._open)
    self._open = (priority, item)


class _WaitsInPut(replay.ReverbWriter):
  def put(self, leaves, references=None):
    super().put(leaves, references)
    self.wait()


class _Deaf(replay.ReverbWriter):
  """Ignores the stop signal."""

  def _drain(self, max_pending_items):
    deadline = time.monotonic() + 2.0
    while not self._try_to_drain(max_pending_items, 0.1):
      if time.monotonic() > deadline:
        return


@pytest.mark.parametrize(
  ('writer_class', 'check'),
  [
    (_Backwards, 'items_come_in_order_each_with_a_priority'),
    (_KeepsViews, 'what_is_put_may_be_changed_afterwards'),
    (_Casting, 'other_leaves_are_refused'),
    (_LosesTheLast, 'all_comes_before_it_flushes_or_resets_or_closes'),
    (_WaitsInPut, 'full_table_blocks'),
    (_Deaf, 'stop_ends_a_wait'),
  ],
)
def test_finds_wrong_writers(writer_class, check):
  is_served = issubclass(writer_class, replay.ReverbWriter)
  checks = _ReverbWriters() if is_served else _RecordingWriters()
  checks.writer_class = writer_class
  if is_served:
    checks.deadline_seconds = 1.5
  with pytest.raises((AssertionError, TimeoutError)):
    getattr(checks, f'test_{check}')()
