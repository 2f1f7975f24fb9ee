"""Tests of batches from a local table."""

import pytest

from repertory.components import replay
from repertory.components.replay import local
from support.replay import local_fixture, replay_fixture


@pytest.fixture(name='make')
def _make():
  """Creates a queue, and its batches of three."""
  table = local_fixture.make_table(replay.queue(local_fixture.SIGNATURE, 100))

  def make(timeout_seconds=replay_fixture.DEADLINE_SECONDS):
    place = local.WaitPolicy(timeout_seconds)
    return table, place, local.LocalBatches(table, 3, place)

  return make


def test_excuse_restarts_the_timeout(make):
  _, _, batches = make(0.6)
  call = replay_fixture.Call(next, batches)
  for _ in range(2):
    assert call.is_waiting(0.4)
    batches.reset_timeout()
  with pytest.raises(TimeoutError):
    call.result()


def test_patience_ends_before_the_time_out(make):
  table, _, batches = make()
  batches.batch_timeout_seconds = 0.1
  with pytest.raises(replay.BatchTimeout):
    replay_fixture.Call(next, batches).result()
  local_fixture.insert(table, [1, 2, 3])
  assert local_fixture.values(next(batches)) == [1, 2, 3]
