"""Tests of deadlocks on a local table, which raise an error at once."""

import threading

import numpy as np
import pytest

from repertory.components import replay
from repertory.components.replay import local
from repertory.components.runtime import signals
from support.replay import local_fixture, replay_fixture

_LIMIT = replay.RateLimit(2.0, min_size=5, error_buffer=8.0)


@pytest.fixture(name='table')
def _table():
  return local_fixture.make_table(local_fixture.make_uniform(100, _LIMIT))


def _open(table, **settings):
  return local_fixture.open_writer(
    table, **{'max_pending_items': 0, **settings}
  )


def _put(writer, num_items=1):
  writer.put([np.arange(num_items)])
  if writer.is_ahead():
    writer.wait()


def _message(error):
  return str(error.value)


class TestSampling:
  def test_too_few_items(self, table):
    _put(_open(table), 3)
    batches = local.LocalBatches(table, 4)
    with pytest.raises(replay.DeadlockError) as error:
      next(batches)
    assert _message(error) == (
      'This thread would wait forever: no other thread uses the table, so '
      'none can insert, and too few items are left to sample 4. Table '
      "'replay' (samples_per_insert 2, min_size 5, error_buffer 8) holds 3 of "
      'at most 100 items, after 3 inserts and 0 samples. Continue acting '
      'before the next update: `replay.ReplayRatio` computes when one is due.'
    )

  def test_a_stop_raises_stopped(self, table):
    _open(table)
    place = local.WaitPolicy()
    place.stop.set()
    with pytest.raises(signals.Stopped):
      next(local.LocalBatches(table, 4, place))


class TestInserting:
  def test_too_many_items(self, table):
    writer = _open(table)
    _put(writer, 9)
    with pytest.raises(replay.DeadlockError) as error:
      _put(writer, 3)
    assert _message(error) == (
      'This thread would wait forever: no other thread uses the table, so '
      'none can sample, and 3 more items do not fit. Table '
      "'replay' (samples_per_insert 2, min_size 5, error_buffer 8) holds 9 of "
      'at most 100 items, after 9 inserts and 0 samples. Do the updates that '
      'are due before acting: `replay.ReplayRatio` computes their number.'
    )
    # The items are inserted as soon as another thread samples.
    next(local.LocalBatches(table, 6))
    writer.flush()
    assert table.status().inserts == 12

  def test_turn_of_another(self):
    queue = replay.queue(local_fixture.SIGNATURE, 9)
    table = local_fixture.make_table(queue, num_turns=2)
    with pytest.raises(
      replay.DeadlockError, match='number 0 is next, and this is number 1'
    ):
      _put(_open(table, turn=1))


class TestOthers:
  """A thread waits if another thread may end the wait."""

  def _wait(self, function, *args):
    """Waits in the main thread until the time-out."""
    with pytest.raises(TimeoutError):
      function(*args)

  def test_another_thread_has_put(self, table):
    replay_fixture.Call(lambda: _put(_open(table))).result()
    self._wait(next, local.LocalBatches(table, 4, local.WaitPolicy(0.1)))

  def test_another_thread_was_started(self, table):
    writer = _open(table)
    batches = local.LocalBatches(table, 4, local.WaitPolicy(20.0))
    _put(writer, 3)
    # Another thread that may get the table, and starts late.
    timer = threading.Timer(0.3, lambda: _put(writer, 2))
    timer.start()
    assert len(next(batches).keys) == 4
    timer.join()
