"""Tests of the replay dataset against real tables."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import replay
from repertory.components.runtime import signals
from support.replay import replay_fixture
from support.system import heap


@pytest.fixture(autouse=True)
def _no_threads_left():
  with replay_fixture.no_threads_left():
    yield


@pytest.fixture(name='serve')
def _serve():
  """Serves tables of numbers, with datasets that are closed first."""
  contexts, made = [], []

  def serve(table, num_items=0, **settings):
    context = replay_fixture.serve(table, **settings)
    connection = context.__enter__()
    contexts.append(context)
    replay_fixture.insert(connection, range(num_items))

    def make(batch_size=4, **dataset_settings):
      made.append(
        replay.ReplayDataset(connection, table, batch_size, **dataset_settings)
      )
      return made[-1]

    return connection, make

  yield serve
  for dataset in made:
    dataset.close()
  made.clear()
  for context in contexts:
    context.__exit__(None, None, None)


def _next(dataset):
  return replay_fixture.Call(next, dataset).result()


def test_probabilities_of_a_prioritized_table(serve):
  exponent = 0.5
  priorities = np.array([1.0, 4.0, 9.0, 16.0])
  table = replay_fixture.make_prioritized(exponent)
  connection, make = serve(table)
  replay_fixture.insert(connection, range(4), list(priorities))
  dataset = make(batch_size=400)
  batch = _next(dataset)
  expected = priorities**exponent / np.sum(priorities**exponent)  # [4]
  which = batch.data['x'].numpy()  # [B]
  np.testing.assert_allclose(batch.probabilities, expected[which])
  np.testing.assert_array_equal(batch.table_sizes, 4)
  # The counts of 400 draws; 6 standard deviations, which are at most 10.
  counts = np.bincount(which, minlength=4)
  np.testing.assert_allclose(counts, 400 * expected, atol=60)


def test_a_batch_leaves_no_memory_behind(serve):
  _, make = serve(replay_fixture.make_prioritized(), num_items=10)
  dataset, used = make(), []

  def take(num_batches):
    for _ in range(num_batches):
      next(dataset)
    used.append(heap.used_bytes())

  replay_fixture.Call(take, 1000).result()
  replay_fixture.Call(take, 4000).result()
  # A `tf.function` without XLA would leave 400 bytes at each call.
  assert used[1] - used[0] < 4000 * 100


# A table in the same process is read without gRPC. There Reverb 0.7.2 looks
# only every 3 seconds whether a wait is over; half a second goes to our own
# watcher, and the rest is for a busy machine.
LOCAL_SECONDS = 8


def test_close_and_stop_end_waits_in_the_same_process(serve):
  connection, make = serve(
    replay_fixture.make_prioritized(), timeout_seconds=60
  )
  closed = make()
  calls = [replay_fixture.Call(next, dataset) for dataset in (closed, make())]
  assert all(call.is_waiting() for call in calls)
  replay_fixture.Call(closed.close).result(LOCAL_SECONDS)
  with pytest.raises(signals.Stopped):
    calls[0].result(LOCAL_SECONDS)
  assert calls[1].is_waiting()
  connection.stop.set()
  with pytest.raises(signals.Stopped):
    calls[1].result(LOCAL_SECONDS)


def _settle(connection):
  """Returns the number of samples, once it no longer grows."""
  counts = [-1, -2]
  while counts[-1] != counts[-2]:
    assert not signals.StopSignal().wait(0.2)
    counts.append(replay_fixture.table_status(connection).samples)
    assert len(counts) < 40, f'samples never end: {counts}'
  return counts[-1]


def test_what_lies_in_between_is_bounded(serve):
  """In transit, `prefetch` batches, and the batch in assembly."""
  batch_size, prefetch = 8, 3
  bound = batch_size + (prefetch + 1) * batch_size
  connection, make = serve(replay_fixture.make_prioritized(), num_items=20)
  dataset = make(batch_size, prefetch=prefetch)
  assert _settle(connection) <= bound
  for _ in range(5):
    _next(dataset)
  assert 5 * batch_size <= _settle(connection) <= 5 * batch_size + bound


def test_batches_of_bundles(serve):
  table = replay.queue(replay_fixture.SIGNATURE, 12).bundled(3)
  connection, make = serve(table)
  dataset = make(6, prefetch=0)
  assert dataset.element_spec.data['x'] == tf.TensorSpec([6], tf.int64)
  assert dataset.element_spec.table_sizes == tf.TensorSpec([6], tf.int64)
  (records,) = table.packing.bundle([np.arange(12)])
  with connection.client.trajectory_writer(1) as writer:
    for record in records:
      writer.append([record])
      writer.create_item(table.name, 1.0, [writer.history[0][-1]])
    writer.flush(timeout_ms=20_000)
  status = replay.table_status(connection.client, [table])[table.name]
  assert (status.inserts, status.max_size) == (12, 12)
  keys = []
  for first in (0, 6):
    sample = _next(dataset)
    np.testing.assert_array_equal(sample.data['x'], np.arange(6) + first)
    keys += sample.keys.numpy().tolist()
    assert sample.probabilities.numpy().tolist() == [1.0] * 6
  # Those of a bundle share their key.
  assert [keys.index(key) for key in keys] == [
    *[0] * 3, *[3] * 3, *[6] * 3, *[9] * 3,
  ]  # fmt: skip


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ({'batch_size': 0}, 'batch_size must be at least 1, got 0'),
    ({'prefetch': -1}, 'prefetch must be at least 0, got -1'),
    ({'batch_size': 4}, 'batch_size must be a multiple of 3'),
  ],
)
def test_arguments_are_checked(serve, settings, message):
  _, make = serve(replay.queue(replay_fixture.SIGNATURE, 12).bundled(3))
  with pytest.raises(ValueError, match=message):
    make(**settings)
