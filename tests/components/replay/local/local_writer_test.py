"""Tests of writers to local tables: order of items, and waits."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import replay
from repertory.components.replay import local
from support.replay import (
  local_fixture,
  replay_fixture,
)


def _drain(table):
  """Samples all items of a queue."""
  size = table.status().size
  return local_fixture.sample(table, size).data


def _make_queue(signature, max_size=100_000):
  return local.Table(replay.queue(signature, max_size), 0)


# 'image' is an object, 'number' is not.
_SIGNATURE = {
  'image': tf.TensorSpec([2000], tf.uint8),
  'number': tf.TensorSpec([], tf.int64),
}


def _image(number):
  return np.full([2000], number, np.uint8)


def test_items_share_kept_arrays_until_the_last_is_removed():
  table = _make_queue(_SIGNATURE)
  writer = local_fixture.open_writer(table)
  assert list(writer.shared) == [0]
  kept = writer.keep({0: _image(3)[None]})[0]
  kept_by_all = weakref.ref(kept[0])
  for number in range(3):
    writer.put([kept, np.array([number])])
  del kept
  for number in range(3):
    gc.collect()
    assert kept_by_all() is not None
    item = local_fixture.sample(table, 1).data
    assert item['number'].tolist() == [number]
    np.testing.assert_array_equal(item['image'], [_image(3)])
  assert kept_by_all() is None


def test_batches_are_as_tensorflow_takes_them():
  table = _make_queue(_SIGNATURE)
  writer = local_fixture.open_writer(table)
  writer.put([np.stack([_image(1)] * 3), np.arange(3)])
  image = _drain(table)['image']
  assert image.ctypes.data % 64 == 0
  assert image.flags.c_contiguous


class TestBackPressure:
  """Two items run ahead."""

  @pytest.fixture(name='make')
  def _make(self):
    table = local_fixture.make_table(replay.queue(local_fixture.SIGNATURE, 2))

    def make(timeout_seconds, max_pending_items=0, num_items=2):
      place = local.WaitPolicy(timeout_seconds)
      writer = local_fixture.open_writer(
        table, place, max_pending_items=max_pending_items
      )
      for value in range(num_items):
        _put(writer, value)
      return table, place, writer

    return make

  def test_close_that_times_out_still_closes(self, make):
    table, _, writer = make(0.3)
    with pytest.raises(TimeoutError):
      replay_fixture.Call(_put, writer, 2).result()
    with pytest.raises(TimeoutError):
      writer.close()
    with pytest.raises(RuntimeError, match='closed'):
      _put(writer, 3)
    # The pending item was dropped.
    local_fixture.sample(table, 2)
    assert table.status().inserts == 2

  def test_writers_come_in_the_order_in_which_they_put(self, make):
    table, place, first = make(60, max_pending_items=9)
    second = local_fixture.open_writer(table, place)
    second.put([np.array([10, 11])])
    first.put([np.array([2])])
    second.put([np.array([12])])
    found = []
    for _ in range(3):
      found += local_fixture.values(local_fixture.sample(table, 2))
    assert found == [0, 1, 10, 11, 2, 12]


def _put(writer, *values):
  """Writes numbers, and waits as an adder does."""
  writer.put([np.array(values, np.int64)])
  if writer.is_ahead():
    writer.wait()


class TestTurns:
  @pytest.fixture(name='table')
  def _table(self):
    description = replay.queue(local_fixture.SIGNATURE, 1000)
    return local_fixture.make_table(description, num_turns=3)

  def test_the_order_does_not_depend_on_speed(self, table):
    def write(turn, order):
      writer = local_fixture.open_writer(table, turn=turn, max_pending_items=2)
      for k in order:
        _put(writer, 100 * turn + k)
      writer.close()

    calls = [replay_fixture.Call(write, n, range(20)) for n in (2, 0)]
    assert calls[0].is_waiting()
    calls.append(replay_fixture.Call(write, 1, range(5)))
    for call in calls:
      call.result()
    expected = [
      100 * turn + k
      for k in range(20)
      for turn in range(3)
      if turn != 1 or k < 5
    ]
    assert _drain(table)['x'].tolist() == expected

  def test_waits_for_a_writer_without_items(self, table):
    place = local.WaitPolicy(0.3)
    writer = local_fixture.open_writer(
      table, place, turn=1, max_pending_items=0
    )
    message = 'writers insert in round-robin order, and this is number 1'
    with pytest.raises(TimeoutError, match=message):
      replay_fixture.Call(_put, writer, 1).result()

  def test_a_position_is_of_one_writer_at_a_time(self, table):
    writer = local_fixture.open_writer(table, turn=0)
    with pytest.raises(ValueError, match=r'unique .* 0 is in use'):
      local_fixture.open_writer(table, turn=0)
    writer.close()
    local_fixture.open_writer(table, turn=0)

  def test_positions_out_of_range_are_refused(self, table):
    with pytest.raises(ValueError, match=r'turn .*\[0, 3\).* 3'):
      local_fixture.open_writer(table, turn=3)
