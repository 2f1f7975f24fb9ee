"""Tests of deadlocks on a local table, which raise an error at once."""

import threading

import numpy as np
import pytest

from repertory.components import adders, datasets, replay, transports
from repertory.components.replay import local
from repertory.components.runtime import signals
from repertory.components.transports import experience
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
    batches = datasets.LocalBatches(table, 4)
    with pytest.raises(replay.DeadlockError) as error:
      next(batches)
    # Four samples leave 2 · 5 − 4 = 6 ≥ 10 − 8.
    assert _message(error) == (
      'This thread would wait forever: no other thread uses the table, so '
      "none can insert. Table 'replay' (samples_per_insert 2, min_size 5, "
      'error_buffer 8) holds 3 of at most 100 items, after 3 inserts and 0 '
      'samples. To sample 4 takes 2 more inserts. Continue acting before the '
      'next update: `replay.ReplayRatio` computes when one is due.'
    )

  def test_sampled_too_often(self, table):
    writer, batches = _open(table), datasets.LocalBatches(table, 4)
    _put(writer, 5)
    next(batches)
    next(batches)
    # Samples wait below 10 − 8 = 2, and 2 · 5 − 8 = 2.
    with pytest.raises(replay.DeadlockError, match=r'8 samples.*takes 2 more'):
      next(batches)
    _put(writer, 2)
    next(batches)

  def test_a_batch_that_exceeds_the_buffer(self, table):
    _put(_open(table), 5)
    # 30 samples need 32 / 2 = 16 inserts, but they wait above 10 + 8 = 18.
    with pytest.raises(
      replay.DeadlockError,
      match=(
        'takes 11 more inserts, but error_buffer is too small: it allows no '
        'more than 4'
      ),
    ):
      next(datasets.LocalBatches(table, 30))

  def test_queue(self):
    table = local_fixture.make_table(replay.queue(local_fixture.SIGNATURE, 9))
    _put(_open(table), 2)
    with pytest.raises(
      replay.DeadlockError, match=r'\(a queue\) holds 2 .* takes 1 more inserts'
    ):
      next(datasets.LocalBatches(table, 3))

  def test_after_the_writer_was_closed(self, table):
    writer = _open(table)
    _put(writer, 3)
    writer.close()
    with pytest.raises(replay.DeadlockError):
      next(datasets.LocalBatches(table, 4))

  def test_a_stop_raises_stopped(self, table):
    _open(table)
    place = local.WaitPolicy()
    place.stop.set()
    with pytest.raises(signals.Stopped):
      next(datasets.LocalBatches(table, 4, place))

  def test_a_learner_side(self):
    items = adders.Transitions(1, 0.9)
    spec = replay_fixture.TRANSITION_SPEC
    table = replay.uniform(items.signature(spec), 100, _LIMIT)
    described = experience.Experience(items, [table], batch_size=4)
    transport = transports.InProcessTransport(
      described, transports.TransportParts(), seed=0
    )
    transport.make_adder(1, priority=lambda: 1.0, version=lambda: 0)
    with pytest.raises(replay.DeadlockError, match='takes 5 more inserts'):
      transport.make_learner_side().wait_for_items()


class TestInserting:
  def test_too_many_items(self, table):
    writer = _open(table)
    _put(writer, 9)
    with pytest.raises(replay.DeadlockError) as error:
      _put(writer, 3)
    # 2 · 12 − 18 = 6.
    assert _message(error) == (
      'This thread would wait forever: no other thread uses the table, so '
      "none can sample. Table 'replay' (samples_per_insert 2, min_size 5, "
      'error_buffer 8) holds 9 of at most 100 items, after 9 inserts and 0 '
      'samples. To insert 3 takes 6 more samples. Do the updates that are '
      'due before acting: `replay.ReplayRatio` computes their number.'
    )
    # The items are inserted as soon as another thread samples.
    next(datasets.LocalBatches(table, 6))
    writer.flush()
    assert table.status().inserts == 12

  def test_a_writer_that_closes(self, table):
    writer = _open(table, max_pending_items=9)
    _put(writer, 10)
    with pytest.raises(replay.DeadlockError):
      writer.close()
    with pytest.raises(RuntimeError, match='closed'):
      _put(writer)

  def test_a_stop_raises_stopped(self, table):
    place = local.WaitPolicy()
    writer = _open(table, place=place)
    _put(writer, 9)
    place.stop.set()
    with pytest.raises(signals.Stopped):
      _put(writer)
    writer.close()

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
    self._wait(next, datasets.LocalBatches(table, 4, local.WaitPolicy(0.1)))

  def test_another_thread_has_sampled(self, table):
    place = local.WaitPolicy(0.1)
    writer = _open(table, place=place)
    _put(writer, 9)
    replay_fixture.Call(table.sample, 1, 0).result()
    self._wait(_put, writer)

  def test_another_thread_was_started(self, table):
    writer = _open(table)
    batches = datasets.LocalBatches(table, 4, local.WaitPolicy(20.0))
    _put(writer, 3)
    # Another thread that may get the table, and starts late.
    timer = threading.Timer(0.3, lambda: _put(writer, 2))
    timer.start()
    assert len(next(batches).keys) == 4
    timer.join()

  def test_a_learner_without_a_writer(self, table):
    """As a learner that waits for actors that exist already."""
    self._wait(next, datasets.LocalBatches(table, 4, local.WaitPolicy(0.1)))

  def test_the_table_was_created_in_another_thread(self):
    table = replay_fixture.Call(
      local_fixture.make_table, local_fixture.make_uniform(100, _LIMIT)
    ).result()
    writer = _open(table, place=local.WaitPolicy(0.1))
    _put(writer, 9)
    self._wait(_put, writer)
