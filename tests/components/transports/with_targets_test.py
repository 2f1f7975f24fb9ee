"""Tests of two-stage transports, with nodes that compute targets between."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import adders, replay, transports, types
from repertory.components.replay import served
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


@contextlib.contextmanager
def _serve_reverb(described):
  with replay_fixture.serve(*described.all_tables) as connection:
    yield transports.ReverbTransport(
      described, transports.make_adder, connection
    )


@contextlib.contextmanager
def _serve(described):
  server = served.ReplayServer(described.all_tables, seed=0)
  connection = served.ServerConnection(server.address)
  try:
    yield transports.ServedTransport(
      described, transports.make_adder, connection
    )
  finally:
    server.stop()


@pytest.mark.parametrize('serve', [_serve_reverb, _serve])
def test_leads_over_a_server(serve):
  described = _describe()
  with serve(described) as transport, contextlib.ExitStack() as stack:
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
