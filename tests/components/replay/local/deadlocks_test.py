"""Tests of deadlocks on a local table, which raise an error at once.

That of sampling is tested with the page that shows it.
"""

import threading

import numpy as np
import pytest

from repertory.components import replay
from repertory.components.replay import local
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


class TestInserting:
  def test_too_many_items(self, table):
    writer = _open(table)
    _put(writer, 9)
    with pytest.raises(replay.DeadlockError) as error:
      _put(writer, 3)
    assert str(error.value) == (
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


class TestOthers:
  """A thread waits if another thread may end the wait."""

  def test_another_thread_has_put(self, table):
    replay_fixture.Call(lambda: _put(_open(table))).result()
    with pytest.raises(TimeoutError):
      next(local.LocalBatches(table, 4, local.WaitPolicy(0.1)))

  def test_another_thread_was_started(self, table):
    writer = _open(table)
    batches = local.LocalBatches(table, 4, local.WaitPolicy(20.0))
    _put(writer, 3)
    # Another thread that may get the table, and starts late.
    timer = threading.Timer(0.3, lambda: _put(writer, 2))
    timer.start()
    assert len(next(batches).keys) == 4
    timer.join()
