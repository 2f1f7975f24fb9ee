"""Tests of two-stage transports, with nodes that compute targets between."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import adders, replay, transports, types
from repertory.components.replay import local
from repertory.components.transports import experience
from support.replay import replay_fixture

_SPEC = replay_fixture.TRANSITION_SPEC
_ITEMS = adders.Transitions(1, 0.9)
_B = 4


def _describe():
  """Two samples of each item after the first four, and one of each target."""
  signature = _ITEMS.signature(_SPEC)
  limit = replay.RateLimit(2.0, min_size=4, error_buffer=12.0)
  item = types.SampleWithTargets(
    signature.observation,
    tf.TensorSpec([], tf.float32),
    version=tf.TensorSpec([], tf.int64),
  )
  limit_of_targets = replay.RateLimit(1.0, min_size=4, error_buffer=16.0)
  targets = replay.uniform(item, 100, limit_of_targets, replay.TRAIN_BUFFER)
  return experience.Experience(
    _ITEMS,
    [replay.uniform(signature, 1000, limit)],
    batch_size=_B,
    with_targets=experience.Experience(_ITEMS, [targets], batch_size=_B),
  )


def _open(**settings):
  return transports.InProcessTransport(
    _describe(),
    transports.TransportParts(),
    seed=0,
    place=local.WaitPolicy(20.0),
    **settings,
  )


def _act(transport, values):
  """Writes an item for each value."""
  adder = transport.make_adder(
    1, priority=lambda: 1.0, version=lambda: 0, max_pending_items=0
  )
  replay_fixture.play(adder, values)
  return adder


def _label(batches, writer, version=0):
  """Computes the targets of a batch: ten times the observation."""
  observation = np.asarray(next(batches).data.observation)
  versions = np.full([_B], version, np.int64)
  writer.put([observation, 10 * observation.astype(np.float32), versions])
  if writer.is_ahead():
    writer.wait()


def _make_writer(transport):
  writer = transport.learned.make_writer(max_pending_items=0)
  writer.open(_B)
  return writer


def _inserts(end):
  return {name: status.inserts for name, status in end.statuses().items()}


def test_all_sides_keep_the_ratios():
  """Each side continues until it needs the others, and no further."""
  transport = _open()
  updaters, learners = (
    leg.make_learner_side() for leg in (transport, transport.learned)
  )
  # Without updaters: 2 n − 0 ≤ 2 · 4 + 12.
  with pytest.raises(replay.DeadlockError, match="Table 'replay'"):
    _act(transport, range(100))
  assert _inserts(learners) == {'replay': 10, 'train_buffer': 0}
  # Without a learner: n − 0 ≤ 1 · 4 + 2 · (4 + 1 · 4), which are five batches.
  writer = _make_writer(transport)
  with pytest.raises(replay.DeadlockError, match="Table 'train_buffer'"):
    for _ in range(100):
      _label(updaters.batches, writer)
  assert _inserts(learners)['train_buffer'] == 20
  assert learners.statuses()['replay'].samples == 24
  # Without updaters again: 20 + 4 − m ≥ 1 · 4 − 16, because the sixth batch
  # arrives once there is room. The first stage is not sampled any further.
  with pytest.raises(replay.DeadlockError, match="Table 'train_buffer'"):
    for _ in range(100):
      next(learners.batches)
  assert learners.statuses()['train_buffer'].samples == 36
  assert learners.statuses()['replay'].samples == 24
  # Without actors: 2 · 11 − s ≥ 2 · 4 − 12, and one item was pending.
  with pytest.raises(replay.DeadlockError, match="Table 'replay'"):
    for _ in range(100):
      _label(updaters.batches, writer)
  assert learners.statuses()['replay'].samples == 24


def test_leads_over_a_server():
  described = _describe()
  with (
    replay_fixture.serve(*described.all_tables) as connection,
    contextlib.ExitStack() as stack,
  ):
    transport = transports.ReverbTransport(
      connection, described, transports.TransportParts()
    )
    updaters, learners = (
      leg.make_learner_side() for leg in (transport, transport.learned)
    )
    for end in (updaters, learners):
      stack.callback(end.close)
    _act(transport, range(10)).close()
    writer = _make_writer(transport)
    stack.callback(writer.close)
    for version in range(3):
      _label(updaters.batches, writer, version)
    data = next(learners.batches).data
    np.testing.assert_array_equal(data.target, 10 * np.asarray(data.data))
    assert set(np.asarray(data.version)) <= {0, 1, 2}
    assert _inserts(learners) == {'replay': 10, 'train_buffer': 12}
    # The updater has prefetched, so that no batch is due any more.
    assert not updaters.is_batch_due()
