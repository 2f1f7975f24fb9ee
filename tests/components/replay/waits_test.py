"""Tests of the explanations of waits on a table."""

import logging
import re

import numpy as np
import pytest

from repertory.components import datasets, replay
from repertory.components.replay import local, waits
from support.replay import local_fixture, replay_fixture

_LIMIT = replay.RateLimit(2.0, min_size=5, error_buffer=8.0)
_TABLE = replay.uniform(replay_fixture.SIGNATURE, 100, _LIMIT)


def _status(inserts, samples):
  return replay.TableInfo(inserts, 100, inserts, samples)


@pytest.mark.parametrize(
  ('inserts', 'samples', 'message'),
  [
    # Samples wait below 2 · 5 − 8 = 2, inserts above 10 + 8 = 18.
    (5, 0, 'So 4 can be sampled: missing samples may have been lost'),
    (6, 7, 'To sample 4 takes 1 more inserts.'),
    (0, 0, 'To sample 4 takes 5 more inserts.'),
  ],
)
def test_what_samples_take(inserts, samples, message):
  text = waits.before_samples(_TABLE, _status(inserts, samples), 4)
  assert f'{samples} samples. {message}' in text


@pytest.mark.parametrize(
  ('inserts', 'samples', 'message'),
  [
    (8, 0, 'So there is room for 1 more.'),
    (9, 0, 'To insert 1 takes 2 more samples.'),
    (12, 7, 'To insert 1 takes 1 more samples.'),
  ],
)
def test_what_inserts_take(inserts, samples, message):
  text = waits.before_inserts(_TABLE, _status(inserts, samples), 1)
  assert text.endswith(message)


class TestVigil:
  """Checks after one second and after two, if it is to warn after two."""

  @pytest.fixture(name='keep')
  def _keep(self, caplog):
    """Runs a vigil for some seconds; returns its warning."""

    def keep(look, seconds, warning_seconds=2.0):
      statuses = iter(look)

      def ask():
        status = next(statuses)
        if isinstance(status, Exception):
          raise status
        return status

      vigil = waits.WaitMonitor(
        warning_seconds,
        ask,
        lambda seen: waits.before_samples(_TABLE, seen, 4),
      )
      with caplog.at_level(logging.WARNING):
        for waited in seconds:
          vigil.keep(waited)
      return [record.getMessage() for record in caplog.records]

    return keep

  def test_warns_once_without_activity(self, keep):
    (warning,) = keep([_status(3, 0)] * 2, [0.2, 0.9, 1.1, 1.8, 2.2, 3.5, 9.0])
    assert warning == (
      "Waited 2 seconds for Table 'replay' (samples_per_insert 2, min_size 5, "
      'error_buffer 8) holds 3 of at most 100 items, after 3 inserts and 0 '
      'samples. To sample 4 takes 2 more inserts.'
    )

  @pytest.mark.parametrize('moved', [(4, 0), (3, 1)])
  def test_is_silent_with_activity(self, keep, moved):
    seen = [_status(3, 0), _status(*moved), _status(*moved)]
    assert not keep(seen[:2], [1.0, 2.0])
    assert keep(seen, [1.0, 2.0, 3.0])

  def test_gives_the_reason_for_an_unknown_status(self, keep):
    (warning,) = keep([TimeoutError('No answer.')], [1.0, 2.0])
    assert warning == 'Waited 1 seconds for No answer.'

  def test_never_warns_without_a_time(self, keep):
    assert not keep([], [1.0, 1e9], warning_seconds=None)

  def test_never_warns_without_a_status(self, keep):
    assert not keep([None] * 9, [1.0, 2.0, 3.0])


class TestWarnings:
  """Long waits are logged soon, with numbers."""

  def _take(self, caplog):
    (record,) = caplog.records
    caplog.clear()
    return record.getMessage()

  def test_process(self, caplog):
    table = local_fixture.make_table(_TABLE)
    place = local.WaitPolicy(1.5, warning_seconds=0.4)
    batches = datasets.LocalBatches(table, 4, place)
    with pytest.raises(TimeoutError, match=r'To sample 4 takes 5 more'):
      next(batches)
    message = self._take(caplog)
    assert "for a batch from table 'replay' of this process. Table" in message
    assert message.endswith('To sample 4 takes 5 more inserts.')
    writer = local_fixture.open_writer(table, place, max_pending_items=0)
    writer.put([np.arange(10)])
    call = replay_fixture.Call(writer.wait)
    with pytest.raises(TimeoutError, match='To insert 1 takes 2 more samples'):
      call.result()
    message = self._take(caplog)
    assert message.endswith('To insert 1 takes 2 more samples.')

  def test_server(self, caplog):
    with replay_fixture.serve(
      _TABLE, timeout_seconds=2, warning_seconds=1.0
    ) as connection:
      writer = replay_fixture.make_writer(connection)
      writer.open(1)
      for value in range(10):
        writer.put([np.array([value])])
      message = 'To insert 1 takes 2 more samples.'
      with pytest.raises(TimeoutError, match=message):
        writer.flush()
      assert self._take(caplog).endswith(message)
      connection.stop.set()
      writer.close()
    with replay_fixture.serve(
      _TABLE, timeout_seconds=2, warning_seconds=1.0
    ) as connection:
      batches = datasets.ReplayDataset(connection, _TABLE, 4)
      message = f'{connection}. Table .*To sample 1 takes 5 more inserts.'
      with pytest.raises(TimeoutError, match=message):
        next(batches)
      assert re.search(message, self._take(caplog))
      batches.close()
