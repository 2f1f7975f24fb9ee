"""Tests of the contract of transports and their two sides, with Reverb."""

import contextlib
import os
import time

import numpy as np
import pytest
import tree

from repertory.components import adders, replay, transports
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local, served
from repertory.components.runtime import signals
from repertory.components.transports import experience
from support.replay import replay_fixture
from support.system import calls, stacks

_TRANSITIONS = adders.Transitions(1, 0.9)
_BATCH_SIZE = 4

# A call still running after this time counts as waiting.
_MOMENT_SECONDS = 0.3


class TransportConformance:
  """The contract of `transports.Transport` and its two sides.

  Subclasses have a context `serve(described, directory, timeout_seconds, stop)`
  that yields a transport, with the snapshots of a directory.

  Attributes:
    deadline_seconds: Time after which a call counts as hanging.
  """

  deadline_seconds = 60.0

  @contextlib.contextmanager
  def open(
    self,
    directory,
    table=None,
    timeout_seconds=None,
    stop=None,
    **settings,
  ):
    """Yields a transport of transitions, or of the items in `settings`."""
    settings = {'items': _TRANSITIONS, 'prefetch': 0, **settings}
    described = experience.Experience(
      tables=[table or _uniform(replay_fixture.NO_LIMIT)],
      batch_size=_BATCH_SIZE,
      **settings,
    )
    with (
      calls.no_threads_left(self.deadline_seconds),
      self.serve(
        described,
        str(directory),
        timeout_seconds or self.deadline_seconds,
        stop or signals.StopSignal(),
      ) as transport,
    ):
      yield transport

  @contextlib.contextmanager
  def learn(self, transport):
    """Yields the learner side, and closes it."""
    end = self.call(transport.make_learner_side)
    try:
      yield end
    finally:
      self.call(end.close)

  def call(self, function, *args):
    """Calls a function that may block, with the deadline."""
    return calls.Call(function, *args).result(self.deadline_seconds)

  def add(self, transport, *numbers):
    """Adds a one-step episode for each number."""
    adder = _make_adder(transport)
    replay_fixture.play(
      adder, numbers, lambda *step: self.call(adder.add, *step)
    )
    self.call(adder.close)

  def draw(self, end):
    """Samples a batch."""
    return self.call(next, end.batches)

  def test_items_come_out_whole(self, tmp_path):
    with self.open(tmp_path) as transport:
      self.add(transport, *range(6))
      with self.learn(transport) as end:
        sample = self.draw(end)
        tree.assert_same_structure(sample, end.batches.element_spec)
    assert set(_numbers(sample)) <= set(range(6))
    np.testing.assert_array_equal(sample.data.next_observation, -1)
    assert np.shape(sample.keys) == (_BATCH_SIZE,)
    for name, found, expected in (
      ('probabilities', sample.probabilities, 1 / 6),
      ('table_sizes', sample.table_sizes, 6),
    ):
      np.testing.assert_allclose(
        np.asarray(found), np.full([_BATCH_SIZE], expected), 1e-6, err_msg=name
      )

  def test_batches_are_due_by_the_ratio(self, tmp_path):
    rate_limit = replay.RateLimit(2.0, min_size=4, error_buffer=100.0)
    with (
      self.open(tmp_path, _uniform(rate_limit)) as transport,
      self.learn(transport) as end,
    ):
      end.begin(7)
      assert not end.updates_due(7)
      self.add(transport, *range(5))
      assert not end.updates_due(7)  # (5 − 4) × 2 samples make no batch of 4.
      assert end.updates_due(7, num_items=6)
      self.add(transport, 5)
      assert end.updates_due(7)
      self.draw(end)
      assert not end.updates_due(8)

  def test_waits_for_enough_items(self, tmp_path):
    rate_limit = replay.RateLimit(2.0, min_size=4, error_buffer=100.0)
    table, stop = _uniform(rate_limit), signals.StopSignal()
    with (
      self.open(tmp_path, table, stop=stop) as transport,
      self.learn(transport) as end,
    ):
      self.add(transport, *range(3))
      waiting = calls.Call(end.wait_for_items)
      assert waiting.is_waiting(_MOMENT_SECONDS)
      self.add(transport, 3)
      waiting.result(self.deadline_seconds)
    with (
      self.open(tmp_path, table, stop=stop) as transport,
      self.learn(transport) as end,
    ):
      stop.set()
      with pytest.raises(signals.Stopped):
        self.call(end.wait_for_items)
    with (
      self.open(tmp_path, table, timeout_seconds=0.2) as transport,
      self.learn(transport) as end,
      pytest.raises(TimeoutError),
    ):
      self.call(end.wait_for_items)

  def test_waits_for_a_batch(self, tmp_path):
    with self.open(tmp_path) as transport, self.learn(transport) as end:
      waiting = calls.Call(next, end.batches)
      assert waiting.is_waiting(_MOMENT_SECONDS)
      self.add(transport, *range(6))
      waiting.result(self.deadline_seconds)
    with self.open(tmp_path) as transport, self.learn(transport) as end:
      waiting = calls.Call(next, end.batches)
      assert waiting.is_waiting(_MOMENT_SECONDS)
      self.call(end.close)
      with pytest.raises(signals.Stopped):
        waiting.result(self.deadline_seconds)
    with (
      self.open(tmp_path, timeout_seconds=0.2) as transport,
      self.learn(transport) as end,
      pytest.raises(TimeoutError),
    ):
      self.draw(end)

  def test_learner_changes_priorities(self, tmp_path):
    with self.open(tmp_path, _prioritized(), min_priority=0.5) as transport:
      self.add(transport, 0, 1)
      with self.learn(transport) as end:
        assert end.priorities is not None
        keys = {}
        while len(keys) < 2:
          sample = self.draw(end)
          keys.update(zip(_numbers(sample), np.asarray(sample.keys)))
        new = np.array([0.0, 7.5])  # The first is raised to the minimum.
        end.priorities.update(np.array([keys[0], keys[1]]), new)
        self.call(end.flush)
        # Some batches were prefetched.
        expected, deadline = {0: 1 / 16, 1: 15 / 16}, self.deadline_seconds
        calls.wait_until(
          lambda: all(
            abs(probability - expected[number]) < 1e-6
            for number, probability in _probabilities(self.draw(end))
          ),
          'priorities of 0.5 and 7.5',
          deadline,
        )

  def test_snapshot_is_restored(self, tmp_path):
    signature = _TRANSITIONS.signature(replay_fixture.TRANSITION_SPEC)
    first, second, third = (
      os.path.join(tmp_path, name) for name in ('first', 'second', 'third')
    )
    queue = replay.queue(signature, 100)
    with self.open(first, queue) as transport:
      self.add(transport, *range(20))
      with self.learn(transport) as end:
        numbers = _numbers(self.draw(end))
        state = end.describe()
        path = self.call(self.call(end.take_snapshot))
        checkpointing.prepare_replay(path, second)
        end.remove_snapshots()
        assert not os.path.exists(path)
    checkpoint = checkpointing.Checkpoint('path', {}, state, second)
    with (
      self.open(second, queue) as transport,
      self.learn(transport) as end,
    ):
      end.check_restored(checkpoint)
      numbers += _numbers(self.draw(end))
      (status,) = end.statuses().values()
      assert status.inserts == 20
    assert numbers[:4] == [0, 1, 2, 3]
    # Prefetched batches are lost to the learner.
    start = numbers[4]
    assert start >= 4 and numbers[4:] == [*range(start, start + 4)]
    checkpointing.prepare_replay(None, third)
    with (
      self.open(third, queue) as transport,
      self.learn(transport) as end,
      pytest.raises(checkpointing.CheckpointError, match='from 20 inserts'),
    ):
      end.check_restored(checkpoint)


def _uniform(rate_limit):
  return replay.uniform(
    _TRANSITIONS.signature(replay_fixture.TRANSITION_SPEC), 1000, rate_limit
  )


def _prioritized():
  return replay.prioritized(
    _TRANSITIONS.signature(replay_fixture.TRANSITION_SPEC),
    1000,
    replay_fixture.NO_LIMIT,
    priority_exponent=1.0,
  )


def _make_adder(transport, **settings):
  settings = {'priority': lambda: 1.0, 'version': lambda: 0, **settings}
  return transport.make_adder(1, **settings)


def _numbers(sample):
  return np.asarray(sample.data.observation).tolist()


def _probabilities(sample):
  """Returns number and probability of each item."""
  return [*zip(_numbers(sample), np.asarray(sample.probabilities).tolist())]


class TestReverbTransport(TransportConformance):
  @contextlib.contextmanager
  def serve(self, described, directory, timeout_seconds, stop):
    stacks.require_reverb()
    parts = transports.make_adder
    server = replay.make_server(
      described.tables, checkpoint_directory=directory
    )
    address = f'localhost:{server.port}'
    connection = replay.Connection(address, timeout_seconds, stop)
    try:
      yield transports.ReverbTransport(described, parts, connection, directory)
    finally:
      server.stop()

  def test_waits_for_one_batch_no_longer_than_the_time_out(self, tmp_path):
    with (
      self.open(tmp_path, timeout_seconds=0.2) as transport,
      self.learn(transport) as end,
    ):
      end.reset_count(0)
      end.reset_count(0)
      time.sleep(0.3)
      # A batch came meanwhile.
      end.reset_count(1)
      time.sleep(0.3)
      message = r"0\.2 seconds for a batch .*'replay'"
      with pytest.raises(TimeoutError, match=message):
        end.reset_count(1)

  def test_close_ends_all_whichever_fails(self, tmp_path, monkeypatch):
    with self.open(tmp_path, _prioritized(), min_priority=0.5) as transport:
      end = transport.make_learner_side()
      close = end.batches.close

      def fail():
        close()
        raise OSError('stuck')

      monkeypatch.setattr(end.batches, 'close', fail)
      with pytest.raises(OSError, match='stuck'):
        end.close()  # Then there are no threads left.

  def test_limit_of_pending_items(self, tmp_path):
    for limit, settings in ((2, {}), (6, {'max_pending_items': 6})):
      with self.open(
        tmp_path, max_pending_items_per_environment=2
      ) as transport:
        adder = _make_adder(transport, **settings)
        try:
          replay_fixture.play(adder, range(limit), adder.put)
          assert not adder.is_ahead()
          replay_fixture.play(adder, [9], adder.put)
          assert adder.is_ahead()
        finally:
          self.call(adder.close)


class TestServedTransport(TransportConformance):
  @contextlib.contextmanager
  def serve(self, described, directory, timeout_seconds, stop):
    server = served.ReplayServer(
      described.tables, seed=0, checkpoint_directory=directory, token='secret'
    )
    connection = served.ServerConnection(
      server.address, timeout_seconds, stop, 'secret'
    )
    try:
      yield transports.ServedTransport(
        described, transports.make_adder, connection, directory
      )
    finally:
      server.stop()


class TestInProcessTransport(TransportConformance):
  @contextlib.contextmanager
  def serve(self, described, directory, timeout_seconds, stop):
    yield transports.InProcessTransport(
      described,
      transports.make_adder,
      seed=0,
      place=local.WaitPolicy(timeout_seconds, stop),
      checkpoint_directory=directory,
    )
