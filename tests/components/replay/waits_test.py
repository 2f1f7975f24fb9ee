"""Tests of the log messages and errors of waits on a table."""

import numpy as np
import pytest

from repertory.components import replay
from repertory.components.replay import local, waits
from support.replay import local_fixture, replay_fixture

_LIMIT = replay.RateLimit(2.0, min_size=5, error_buffer=8.0)
_TABLE = replay.uniform(replay_fixture.SIGNATURE, 100, _LIMIT)
_NUMBERS = (
  "Table 'replay' (samples_per_insert 2, min_size 5, error_buffer 8) holds {} "
  'of at most 100 items, after {} inserts and 0 samples.'
)


def _status(inserts, samples):
  return replay.TableInfo(inserts, 100, inserts, samples)


class TestMonitor:
  """Checks after one second and after two, if it is to warn after two."""

  @pytest.fixture(name='keep')
  def _keep(self, caplog):
    """Runs a monitor for some seconds; returns its warnings."""

    def keep(statuses, seconds, warning_seconds=2.0):
      monitor = waits.WaitMonitor(
        local.WaitPolicy(warning_seconds=warning_seconds),
        iter(statuses).__next__,
        lambda seen: waits.describe(_TABLE, seen),
      )
      for waited in seconds:
        monitor.keep(waited)
      return [record.getMessage() for record in caplog.records]

    return keep

  def test_warns_once_without_activity(self, keep):
    (warning,) = keep([_status(3, 0)] * 2, [0.2, 0.9, 1.1, 1.8, 2.2, 3.5, 9.0])
    assert warning == f'Waited 2 seconds for {_NUMBERS.format(3, 3)}'

  def test_is_silent_with_activity(self, keep):
    seen = [_status(3, 0), _status(4, 0), _status(4, 1), _status(4, 1)]
    assert not keep(seen[:3], [1.0, 2.0, 3.0])
    assert keep(seen[1:] + seen[3:], [1.0, 2.0, 3.0])

  def test_never_warns_without_a_time_or_status(self, keep):
    assert not keep([], [1.0, 1e9], warning_seconds=None)
    assert not keep([None] * 9, [1.0, 2.0, 3.0])


def test_long_waits_are_logged_with_the_numbers_of_the_error(caplog):
  table = local_fixture.make_table(_TABLE)
  place = local.WaitPolicy(1.5, warning_seconds=0.4)
  batches = local.LocalBatches(table, 4, place)
  writer = local_fixture.open_writer(table, place, max_pending_items=0)
  for wait, text, numbers in (
    (lambda: next(batches), "a batch from table 'replay' of this process.", 0),
    (writer.wait, "table 'replay' of this process to accept new items", 9),
  ):
    with pytest.raises(TimeoutError) as error:
      replay_fixture.Call(wait).result()
    (record,) = caplog.records
    caplog.clear()
    for message in (record.getMessage(), str(error.value)):
      assert text in message
      assert message.endswith(_NUMBERS.format(numbers, numbers))
    writer.put([np.arange(10)])
