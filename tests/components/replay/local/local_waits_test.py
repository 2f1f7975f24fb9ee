"""Tests of waits for a local table, and of deadlocks, which raise at once.

The deadlock of sampling is tested with the page that shows it.
"""

import threading

import numpy as np
import pytest

from repertory.components import replay
from repertory.components.replay import local
from support.replay import local_fixture, replay_fixture

_LIMIT = replay.RateLimit(2.0, min_size=5, error_buffer=8.0)
_NUMBERS = (
  "Table 'replay' (samples_per_insert 2, min_size 5, error_buffer 8) holds {0} "
  'of at most 100 items, after {0} inserts and 0 samples.'
)


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
      f'none can sample, and 3 more items do not fit. {_NUMBERS.format(9)} Do '
      'the updates that are due before acting: `replay.ReplayRatio` computes '
      'their number.'
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


class TestTimeouts:
  @pytest.mark.parametrize(
    ('side', 'text', 'num_items'),
    [
      ('learner', "a batch from table 'replay' of this process.", 0),
      ('actor', "table 'replay' of this process to accept new items", 9),
    ],
  )
  def test_errors_have_the_numbers_of_the_table(
    self, table, side, text, num_items
  ):
    place = local.WaitPolicy(0.3)
    writer = _open(table, place=place)
    if side == 'actor':
      writer.put([np.arange(10)])
      wait = writer.wait
    else:
      wait = local.LocalBatches(table, 4, place).__next__
    with pytest.raises(TimeoutError, match=text) as error:
      replay_fixture.Call(wait).result()
    assert _NUMBERS.format(num_items) in str(error.value)

  def test_may_be_restarted(self, table):
    batches = local.LocalBatches(table, 4, local.WaitPolicy(0.6))
    call = replay_fixture.Call(next, batches)
    for _ in range(2):
      assert call.is_waiting(0.4)
      batches.reset_timeout()
    with pytest.raises(TimeoutError):
      call.result()

  def test_one_of_a_batch_ends_before(self, table):
    batches = local.LocalBatches(table, 4)
    batches.batch_timeout_seconds = 0.1
    with pytest.raises(replay.BatchTimeout):
      replay_fixture.Call(next, batches).result()
    local_fixture.insert(table, range(5))
    assert set(local_fixture.values(next(batches))) <= set(range(5))
