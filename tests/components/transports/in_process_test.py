"""Tests of both sides of the local transport."""

import numpy as np
import pytest
import tree

from repertory.components import adders, replay, transports
from repertory.components.replay import local
from repertory.components.runtime import signals
from repertory.components.transports import experience
from support.replay import replay_fixture

_SPEC = replay_fixture.TRANSITION_SPEC
_ITEMS = adders.Transitions(1, 0.9)


@pytest.fixture(autouse=True)
def _no_threads_left():
  with replay_fixture.no_threads_left():
    yield


def _describe(table=None, **settings):
  """Describes a table with two samples per item."""
  rate_limit = replay.RateLimit(2.0, min_size=4, error_buffer=100.0)
  signature = _ITEMS.signature(_SPEC)
  table = table or replay.uniform(signature, 1000, rate_limit)
  settings = {'batch_size': 4, **settings}
  return experience.Experience(_ITEMS, [table], **settings)


def _make_queue(max_size=100):
  return replay.queue(_ITEMS.signature(_SPEC), max_size)


def _open(described=None, parts=None, timeout_seconds=20.0, **settings):
  settings = {'seed': 0, **settings}
  place = local.WaitPolicy(timeout_seconds)
  return transports.InProcessTransport(
    described or _describe(),
    parts or transports.make_adder,
    place=place,
    **settings,
  )


def _make_adder(transport, **settings):
  settings = {'priority': lambda: 1.0, 'version': lambda: 0, **settings}
  return transport.make_adder(1, **settings)


def _add(transport, num_items, **settings):
  adder = _make_adder(transport, **settings)
  replay_fixture.play(adder, range(num_items))
  assert adder.num_items == num_items
  return adder


def _numbers(sample):
  return sample.data.observation.tolist()


def test_each_side_may_have_its_own_stop_signal():
  transport = _open(_describe(_make_queue(5)))
  stop = signals.StopSignal()
  stop.set()
  stopped = transport.at(local.WaitPolicy(20.0, stop))
  adder = _make_adder(stopped, max_pending_items=0)
  with pytest.raises(signals.Stopped):
    replay_fixture.play(adder, range(6))
  # Others continue to wait, here until there is an item.
  assert _numbers(next(transport.make_learner_side().batches)) == [0, 1, 2, 3]
  for one in (transport, stopped):
    (status,) = one.make_learner_side().statuses().values()
    assert status.size == 2


def _run(seed, described):
  """Alternates acting and learning in one thread; returns all batches."""
  transport = _open(described, seed=seed)
  end, adder = transport.make_learner_side(), _make_adder(transport)
  learned, steps = [], 0
  for number in range(40):
    replay_fixture.play(adder, [number])
    while end.updates_due(steps, adder.num_items):
      sample = next(end.batches)
      learned.append(sample)
      end.priorities.update(sample.keys, 1.0 + sample.data.observation % 5)
      steps += 1
  assert steps == 18  # (40 − 4) · 2 / 4
  return learned


def test_in_one_thread_batches_follow_from_the_seed():
  rate_limit = replay.RateLimit(2.0, min_size=4, error_buffer=100.0)
  table = replay.prioritized(_ITEMS.signature(_SPEC), 20, rate_limit, 0.6)
  described = _describe(table, min_priority=0.1)
  first, again, other = (_run(seed, described) for seed in (1, 1, 2))
  tree.map_structure(np.testing.assert_array_equal, first, again)
  assert [_numbers(s) for s in first] != [_numbers(s) for s in other]


class TestSnapshots:
  @pytest.fixture(name='directory')
  def _directory(self, tmp_path):
    return str(tmp_path / 'snapshots')

  def test_learner_need_not_wait_for_the_disk(self, directory, monkeypatch):
    transport = _open(checkpoint_directory=directory)
    end = transport.make_learner_side()
    _add(transport, 10).close()
    may_write, write = signals.StopSignal(), local.write

    def write_later(*arguments):
      assert may_write.wait(replay_fixture.DEADLINE_SECONDS)
      return write(*arguments)

    monkeypatch.setattr(local, 'write', write_later)
    writing = replay_fixture.Call(end.take_snapshot())
    for _ in range(3):
      next(end.batches)
    _add(transport, 10).close()
    may_write.set()
    writing.result()
    # As of the copies.
    status = (
      _open(checkpoint_directory=directory).make_learner_side().statuses()
    )
    assert (status['replay'].inserts, status['replay'].samples) == (10, 0)
