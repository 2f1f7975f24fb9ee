"""Tests of the contents of served tables: draws, shared arrays, snapshots."""

import contextlib
import weakref

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import replay
from repertory.components.replay import local, served
from repertory.components.replay.local import stored_arrays
from support.replay import replay_fixture

_SIGNATURE = {
  'image': tf.TensorSpec([40, 40], tf.uint8),
  'number': tf.TensorSpec([], tf.int64),
}
_OTHER = replay.queue({'x': tf.TensorSpec([], tf.int64)}, 10, 'other')


def _table(exponent=None):
  if exponent is None:
    return replay.uniform(_SIGNATURE, 100, replay_fixture.NO_LIMIT)
  return replay.prioritized(
    _SIGNATURE, 100, replay_fixture.NO_LIMIT, priority_exponent=exponent
  )


@contextlib.contextmanager
def _serve(*tables, seed=0, **settings):
  server = served.ReplayServer(tables, seed, **settings)
  connection = served.ServerConnection(server.address)
  try:
    yield server, connection
  finally:
    server.stop()


def _image(number):
  """Returns an image that can be compressed, or not, by its number."""
  if number % 2:
    return np.full([40, 40], number, np.uint8)
  return np.random.default_rng(number).integers(0, 256, [40, 40], np.uint8)


def _insert(connection, table, numbers, priority=lambda: 1.0):
  writer = served.ServedWriter(connection, table, priority=priority)
  writer.open(1)
  for number in numbers:
    writer.put([_image(number)[np.newaxis], np.array([number])])
  writer.flush()
  writer.close()


def _draw(connection, table, num_batches, prefetch=0):
  batches = served.ServedBatches(connection, table, 32, prefetch=prefetch)
  with contextlib.closing(batches):
    return [next(batches) for _ in range(num_batches)]


@pytest.mark.parametrize('exponent', [None, 0.7])
def test_batches_follow_from_the_seed(exponent):
  table = _table(exponent)
  found = []
  for seed in (1, 1, 2):
    with _serve(table, seed=seed) as (_, connection):
      _insert(connection, table, range(50))
      samples = _draw(connection, table, 3)
    found.append([sample.data['number'].tolist() for sample in samples])
    for sample in samples:
      expected = [_image(number) for number in sample.data['number']]
      np.testing.assert_array_equal(sample.data['image'], expected)
  assert found[0] == found[1] != found[2]
  # Those of the same table in this process.
  twin = local.Table(table, 1)
  writer = local.LocalWriter(twin, max_pending_items=100)
  writer.open(1)
  for number in range(50):
    writer.put([_image(number)[np.newaxis], np.array([number])])
  drawn = [twin.sample(32, 0).data['number'].tolist() for _ in range(3)]
  assert drawn == found[0]


def test_batches_are_sampled_ahead_by_their_number():
  table = _table()
  with _serve(table) as (_, connection):
    _insert(connection, table, range(50))
    for prefetch in (0, 2):
      before = connection.look(table).samples
      batches = served.ServedBatches(connection, table, 4, prefetch=prefetch)
      with contextlib.closing(batches):
        next(batches)
        expected = before + 4 * (1 + prefetch)
        replay_fixture.wait_until(
          lambda expected=expected: connection.look(table).samples >= expected,
          f'{expected} samples',
        )
        assert connection.look(table).samples == expected


def test_kept_arrays_are_stored_once_and_images_compressed():
  table = _table()
  with _serve(table) as (server, connection):
    writer = served.ServedWriter(connection, table)
    writer.open(2)
    for number in (1, 2):
      kept = writer.keep({0: _image(number)[np.newaxis]})[0]
      for other in (10, 20):
        writer.put([kept, np.array([number + other])])
    writer.flush()
    writer.close()
    images = server._tables[table.name].copy().items.leaves[0]
  assert images[0] is images[1] and images[2] is images[3]
  assert isinstance(images[0], stored_arrays.CompressedArray)
  assert isinstance(images[2], np.ndarray)  # Noise.
  for image, number in zip(images, (1, 1, 2, 2)):
    np.testing.assert_array_equal(np.asarray(image), _image(number))


def test_snapshots_have_all_tables_and_suit_this_process(tmp_path):
  table, directory = _table(0.5), str(tmp_path)
  tables = table, _OTHER
  priorities = iter(range(1, 51))
  with _serve(*tables, checkpoint_directory=directory) as (_, connection):
    _insert(connection, table, range(50), lambda: float(next(priorities)))
    writer = served.ServedWriter(connection, _OTHER)
    writer.open(1)
    writer.put([np.array([7, 8])])
    writer.flush()
    writer.close()
    path = connection.take_snapshot()()
    later = _draw(connection, table, 2)
  assert path.startswith(directory)
  with _serve(*tables, seed=9, checkpoint_directory=directory) as (_, again):
    statuses = again.statuses()
    assert statuses[table.name].inserts == 50
    assert statuses['other'].inserts == 2
    np.testing.assert_equal(_draw(again, table, 2), later)
  restored = local.Table(table, 9)
  contents = local.read(directory, table)
  restored.restore(contents)
  for expected in later:
    np.testing.assert_equal(restored.sample(32, 0), expected)
  # And the other way round.
  local.write(directory, [(table, contents)])
  with _serve(table, seed=9, checkpoint_directory=directory) as (server, one):
    images = server._tables[table.name].copy().items.leaves[0]
    kinds = {type(image) for image in images}
    assert kinds == {np.ndarray, stored_arrays.CompressedArray}
    np.testing.assert_equal(_draw(one, table, 2), later)


def test_arrays_that_are_not_kept_are_freed_with_their_items():
  table = replay.queue(_SIGNATURE, 100)
  with _serve(table) as (server, connection):
    writer = served.ServedWriter(connection, table, max_pending_items=100)
    writer.open(1)
    for number in range(0, 80, 2):
      writer.put([_image(number)[np.newaxis], np.array([number])])
    writer.flush()
    images = server._tables[table.name].copy().items.leaves[0]
    alive = [weakref.ref(image) for image in images]
    del images
    _draw(connection, table, 1)
    replay_fixture.wait_until(
      lambda: sum(one() is not None for one in alive) == 40 - 32,
      'the arrays of sampled items to be freed',
    )
    writer.close()
