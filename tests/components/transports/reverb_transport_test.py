"""Tests of both sides of the transport through a replay server."""

import time

import pytest

from repertory.components import adders, replay, transports
from repertory.components.checkpoints import checkpointing
from repertory.components.config import settings
from repertory.components.transports import experience
from support.replay import replay_fixture

_SPEC = replay_fixture.TRANSITION_SPEC
_ITEMS = adders.Transitions(1, 0.9)


@pytest.fixture(autouse=True)
def _no_threads_left():
  with replay_fixture.no_threads_left():
    yield


@pytest.fixture(name='open_transport')
def _open_transport():
  """Opens transports through a table with two samples per item."""
  rate_limit = replay.RateLimit(2.0, min_size=4, error_buffer=100.0)
  table = replay.uniform(_ITEMS.signature(_SPEC), 1000, rate_limit)

  def open_transport(timeout_seconds=20.0, **changes):
    connection = replay.Connection(address, timeout_seconds)
    described = experience.Experience(
      _ITEMS, [table], batch_size=4, prefetch=0, **changes
    )
    return connection, transports.ReverbTransport(
      connection, described, transports.TransportParts()
    )

  with replay_fixture.serve(table) as served:
    address = served.address
    yield open_transport


def _add(transport, num_items):
  """Adds items in episodes of one step."""
  adder = transport.make_adder(1, priority=lambda: 1.0, version=lambda: 0)
  replay_fixture.play(adder, range(num_items), adder.put)
  assert adder.num_items == num_items
  return adder


def test_waits_for_one_batch_no_longer_than_the_time_out(open_transport):
  _, transport = open_transport(0.2)
  end = transport.make_learner_side()
  try:
    end.reset_count(0)
    end.reset_count(0)
    time.sleep(0.3)
    # A batch came meanwhile.
    end.reset_count(1)
    time.sleep(0.3)
    message = r"0\.2 seconds for a batch .*'replay'"
    with pytest.raises(TimeoutError, match=message):
      end.reset_count(1)
  finally:
    end.close()


def test_tables_that_lack_something_are_named(open_transport):
  _, transport = open_transport()
  _add(transport, 3).close()  # Fewer than are sampled from.
  end = transport.make_learner_side()
  state = end.describe()
  end.close()
  assert state == {
    'transport': 'reverb',
    'bundle_sizes': {'replay': 1},
    'tables': {'replay': {'inserts': 3, 'samples': 0}},
  }
  end.check_restored(checkpointing.Checkpoint('path', {}, state, None))
  state['tables']['replay']['inserts'] = 4
  with pytest.raises(checkpointing.CheckpointError, match='from 4 inserts'):
    end.check_restored(checkpointing.Checkpoint('path', {}, state, None))


def test_close_ends_all_whichever_fails(open_transport, monkeypatch):
  _, transport = open_transport(min_priority=0.1)
  end = transport.make_learner_side()
  close = end.batches.close

  def fail():
    close()
    raise OSError('stuck')

  monkeypatch.setattr(end.batches, 'close', fail)
  with pytest.raises(OSError, match='stuck'):
    end.close()  # Then there are no threads left.


def test_impossible_minimum_of_priorities_opens_nothing(open_transport):
  with pytest.raises(settings.SettingError, match=r'min_priority .* got 0\.0'):
    open_transport(min_priority=0.0)
