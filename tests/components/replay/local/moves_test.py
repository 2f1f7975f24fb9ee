"""Tests of the conversion of snapshots to server checkpoints, and back."""

import contextlib
import dataclasses
import os
import shutil
from typing import Any

import numpy as np
import pytest
import reverb
import tensorflow as tf
from reverb.cc import schema_pb2

import local_fixture
import replay_fixture
from repertory.components import replay
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local
from repertory.components.replay.local import moves
from repertory.components.runtime import signals

# Both images have the same shape, so items may share them; the map differs.
_LARGE = {
  'after': tf.TensorSpec([40, 40], tf.uint8),
  'before': tf.TensorSpec([40, 40], tf.uint8),
  'map': tf.TensorSpec([300], tf.float32),
  'number': tf.TensorSpec([], tf.int64),
  'sign': tf.TensorSpec([2], tf.bool),
}
_SMALL = {name: _LARGE[name] for name in ('number', 'sign')}
_LIMIT = replay.RateLimit(samples_per_insert=2.0, min_size=4, error_buffer=9.0)

_TABLES = {
  'uniform': replay.uniform(_LARGE, 50, _LIMIT),
  'prioritized': replay.prioritized(_LARGE, 50, _LIMIT, 0.7),
  'small leaves': replay.prioritized(_SMALL, 50, _LIMIT, 0.7),
  'without a limit': replay.uniform(_SMALL, 50, replay_fixture.NO_LIMIT),
  'queue': replay.queue(_LARGE, 50),
  'thrice': dataclasses.replace(
    replay_fixture.make_fifo(_LARGE, 50), max_times_sampled=3
  ),
}


def _play(table, num_items):
  """Writes items that share images with their neighbors, and learns."""
  number = 0
  writer = local_fixture.open_writer(table, priority=lambda: 1.0 + number % 3)
  has_images = 'map' in table.description.signature
  before = None
  if has_images:
    before, _ = writer.keep([np.zeros([40, 40], np.uint8), None])
  for number in range(1, num_items + 1):
    small = [np.array([number]), np.array([[number % 2, True]], bool)]
    if has_images:
      image = np.full([40, 40], number, np.uint8)
      after, kept = writer.keep([image, np.full([300], number, np.float32)])
      writer.put([None, None, None, *small], [[after, before, kept]])
      before = after
    else:
      writer.put(small)
    status = table.status()
    if status.waiting == 'insert' or status.size > 40:
      drawn = local_fixture.sample(table, 2)
      table.update_priorities(drawn.keys, 1.0 + drawn.data['number'] % 7)
  return table


@contextlib.contextmanager
def _serve(description, directory):
  server = replay.make_server([description], checkpoint_directory=directory)
  try:
    yield replay.Connection(f'localhost:{server.port}')
  finally:
    server.stop()


def _assert_same(found, expected):
  assert found.inserts == expected.inserts
  assert found.samples == expected.samples
  assert found.times_sampled == expected.times_sampled
  np.testing.assert_array_equal(found.priorities, expected.priorities)
  for ours, theirs in zip(found.leaves, expected.leaves, strict=True):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
      np.testing.assert_array_equal(one, other)
      assert np.asarray(one).dtype == np.asarray(other).dtype


def _read_moved(directory, description):
  """Reads the contents that a server or a table wrote."""
  local.to_process(directory, description)
  return local.read(directory, description)


def _num_arrays(contents):
  """Counts the large arrays, without duplicates."""
  large = [leaf for leaf in contents.leaves if leaf.dtype == object]
  return len({id(array) for leaf in large for array in leaf})


@pytest.mark.parametrize('name', _TABLES)
@pytest.mark.parametrize('num_items', [0, 7, 30, 73])
def test_there_and_back_is_the_same(name, num_items, tmp_path):
  description, directory = _TABLES[name], str(tmp_path / 'replay')
  table = _play(local.Table(description, seed=1), num_items)
  contents = table.copy()
  local.write(directory, description, contents)
  local.to_server(directory, description)
  with _serve(description, directory) as connection:
    (status,) = replay.table_status(connection.client).values()
    ours = table.status()
    assert (status.inserts, status.samples) == (ours.inserts, ours.samples)
    assert (status.size, status.max_size) == (ours.size, ours.max_size)
    path = replay.write_checkpoint(connection)
  checkpointing.place_replay(path, str(tmp_path / 'back'))
  _assert_same(_read_moved(str(tmp_path / 'back'), description), contents)


def test_samples_do_not_exceed_the_limit(tmp_path):
  """Wrong counts would abort the server."""
  description, directory = _TABLES['thrice'], str(tmp_path)
  table = _play(local.Table(description, seed=1), 20)
  while table.status().size > 5:
    local_fixture.sample(table, 3)
  local.write(directory, description, table.copy())
  local.to_server(directory, description)
  with _serve(description, directory) as connection:
    client = connection.client
    size = client.server_info()[description.name].current_size
    assert size == 5
    # Each thrice, and not for the 16th time.
    sampler = reverb.TrajectoryDataset(
      connection.address,
      description.name,
      dtypes=[spec.dtype for spec in description.packing.stored_signature],
      shapes=[spec.shape for spec in description.packing.stored_signature],
      max_in_flight_samples_per_worker=1,
      rate_limiter_timeout_ms=500,
    )
    assert len(list(sampler)) == 15


@pytest.mark.parametrize('name', _TABLES)
def test_limiter_is_the_tables_own(name, tmp_path):
  """The previous limiter does not block the writer of the items."""
  description, directory = _TABLES[name], str(tmp_path / 'replay')
  local.write(directory, description, local.Table(description, 1).copy())
  local.to_server(directory, description)
  limits = []
  for place in (directory, str(tmp_path / 'empty')):
    with _serve(description, place) as connection:
      info = connection.client.server_info()[description.name]
      limits.append(info.rate_limiter_info)
      assert info.max_times_sampled == description.max_times_sampled
  assert limits[0] == limits[1]


def _chunks_of_items(path):
  """Returns the keys of all chunks that items of a server's file refer to."""
  keys = set()
  for record in tf.data.TFRecordDataset(path, 'ZLIB').as_numpy_iterator():
    item: Any = schema_pb2.PrioritizedItem()
    item.ParseFromString(record)
    for column in item.flat_trajectory.columns:
      keys |= {piece.chunk_key for piece in column.chunk_slices}
  return keys


def test_server_shares_what_items_shared(tmp_path):
  description, directory = _TABLES['uniform'], str(tmp_path)
  table = _play(local.Table(description, seed=1), 12)
  contents = table.copy()
  assert _num_arrays(contents) == 13 + 12
  local.write(directory, description, contents)
  local.to_server(directory, description)
  (folder,) = os.listdir(directory)
  # Each image and map, and each item's small leaves, once.
  path = os.path.join(directory, folder, 'items.tfrecord')
  assert len(_chunks_of_items(path)) == 13 + 12 + 12
  assert _num_arrays(_read_moved(directory, description)) == 13 + 12


def test_files_of_a_checkpoint_stay_as_they_are(tmp_path):
  """Restored files are links to the checkpoint's."""
  description = _TABLES['prioritized']
  table = _play(local.Table(description, seed=1), 20)
  kept, used = str(tmp_path / 'kept'), str(tmp_path / 'used')
  for _ in range(2):  # A local snapshot, and a server's.
    if not os.path.isdir(kept):
      local.write(kept, description, table.copy())
    (folder,) = os.listdir(kept)
    there = (tmp_path / 'kept' / folder).iterdir()
    files = {path.name: path.read_bytes() for path in there}
    checkpointing.place_replay(os.path.join(kept, folder), used)
    if 'table.json' in files:
      local.to_server(used, description)
    else:
      _assert_same(_read_moved(used, description), table.copy())
    for name, before in files.items():
      assert (tmp_path / 'kept' / folder / name).read_bytes() == before
    if 'table.json' in files:
      shutil.rmtree(kept)
      os.rename(used, kept)


def _write_of_both(description, tmp_path):
  """Returns conversions, and directories with their inputs."""
  table = _play(local.Table(description, seed=1), 40)
  directories = [str(tmp_path / name) for name in ('process', 'server')]
  for directory in directories:
    local.write(directory, description, table.copy())
  local.to_server(directories[1], description)
  return list(zip((local.to_server, local.to_process), directories))


def test_progress_is_reported(tmp_path, monkeypatch):
  monkeypatch.setattr(moves, '_REPORT_SECONDS', 0.0)
  description, reports = _TABLES['uniform'], []
  for move, directory in _write_of_both(description, tmp_path):
    reports.clear()
    move(directory, description, reports.append)
    assert len(reports) > 10
    assert 'of 40 items' in reports[-1]
    counts = [int(text.split(': ')[1].split()[0]) for text in reports]
    assert counts == sorted(counts)


def test_short_conversions_report_nothing(tmp_path):
  description, reports = _TABLES['uniform'], []
  for move, directory in _write_of_both(description, tmp_path):
    move(directory, description, reports.append)
  assert not reports


def test_can_be_stopped(tmp_path, monkeypatch):
  monkeypatch.setattr(moves, '_REPORT_SECONDS', 0.0)
  description = _TABLES['uniform']
  for move, directory in _write_of_both(description, tmp_path):
    stop, reports = signals.StopSignal(), []

    def report(message, stop=stop, reports=reports):
      reports.append(message)
      stop.set()

    with pytest.raises(signals.Stopped):
      move(directory, description, report, stop)
    assert len(reports) == 1


def test_remains_of_another_conversion_are_ignored(tmp_path):
  """As left by a process that was killed."""
  description = _TABLES['uniform']
  _, (_, directory) = _write_of_both(description, tmp_path)
  (name,) = os.listdir(directory)
  left = os.path.join(directory, '.moving', '0')
  os.makedirs(left)
  table = _play(local.Table(description, seed=1), 40)
  _assert_same(_read_moved(directory, description), table.copy())
  assert name not in os.listdir(directory)


def test_without_a_snapshot_nothing_happens(tmp_path):
  description = _TABLES['queue']
  for move in (local.to_server, local.to_process):
    move(str(tmp_path), description)
    move(str(tmp_path / 'missing'), description)
  assert not os.listdir(tmp_path)
  assert local.read(str(tmp_path), description) is None
  assert local.read(str(tmp_path / 'missing'), description) is None


@pytest.mark.parametrize('name', ['without a limit', 'prioritized', 'thrice'])
def test_items_of_a_server_return_once_each(name, tmp_path):
  description = _TABLES[name]
  table = _play(local.Table(description, seed=1), 20)
  contents = table.copy()
  local.write(str(tmp_path / 'to'), description, contents)
  local.to_server(str(tmp_path / 'to'), description)
  num_samples, size = 4, len(contents.priorities)
  with _serve(description, str(tmp_path / 'to')) as connection:
    found = connection.client.sample(
      description.name, num_samples, emit_timesteps=False
    )
    assert len(list(found)) == num_samples
    path = replay.write_checkpoint(connection)
  checkpointing.place_replay(path, str(tmp_path / 'back'))
  back = _read_moved(str(tmp_path / 'back'), description)
  num_gone, times_sampled = 0, 0
  if name == 'thrice':
    total = contents.times_sampled + num_samples
    num_gone, times_sampled = divmod(total, 3)
  expected = dataclasses.replace(
    contents,
    samples=contents.samples + num_samples,
    times_sampled=times_sampled,
    priorities=contents.priorities[num_gone:],
    leaves=[leaf[num_gone:] for leaf in contents.leaves],
  )
  assert len(back.priorities) == size - num_gone
  _assert_same(back, expected)
