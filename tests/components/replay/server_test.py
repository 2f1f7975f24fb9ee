"""Tests of the replay server and the status of its tables."""

import pytest

from repertory.components import replay
from support.replay import replay_fixture

# With 2 samples per item and a buffer of 4: inserts wait above
# 2 · 3 + 4 = 10, samples below 2 · 3 − 4 = 2.
TABLE = replay.uniform(
  replay_fixture.SIGNATURE, 100, replay.RateLimit(2.0, 3, 4.0)
)


@pytest.fixture(autouse=True)
def _no_threads_left():
  with replay_fixture.no_threads_left():
    yield


def test_waiting_side_is_the_one_that_waits():
  """'insert' or 'sample' exactly if such a call blocks."""

  def assert_waiting(inserts, samples, side):
    status = replay_fixture.table_status(connection)
    assert (status.inserts, status.samples) == (inserts, samples)
    assert status.waiting == side

  with replay_fixture.serve(TABLE) as connection:
    assert_waiting(0, 0, 'sample')
    replay_fixture.insert(connection, [1, 2])
    assert_waiting(2, 0, 'sample')
    call = replay_fixture.Call(replay_fixture.sample, connection, 1)
    assert call.is_waiting()
    replay_fixture.insert(connection, [3])  # Reaches min_size.
    call.result()
    assert_waiting(3, 1, '')
    # e = 2 · 3 − 1 = 5, and 5 + 3 · 2 = 11 > 10.
    replay_fixture.insert(connection, [4, 5])
    assert_waiting(5, 1, 'insert')  # 2 · 6 − 1 = 11 > 10
    call = replay_fixture.Call(replay_fixture.insert, connection, [6])
    assert call.is_waiting()
    replay_fixture.sample(connection, 1)
    call.result()
    assert_waiting(6, 2, 'insert')  # 2 · 7 − 2 = 12 > 10
    replay_fixture.sample(connection, 2)
    assert_waiting(6, 4, '')  # 2 · 7 − 4 = 10
    replay_fixture.sample(connection, 6)
    assert_waiting(6, 10, 'sample')  # 2 · 6 − 11 = 1 < 2
    call = replay_fixture.Call(replay_fixture.sample, connection, 1)
    assert call.is_waiting()
    replay_fixture.insert(connection, [7])
    call.result()
    assert_waiting(7, 11, '')  # 2 · 7 − 12 = 2
