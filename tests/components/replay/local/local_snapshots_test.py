"""Tests of snapshots of local tables."""

import dataclasses
import json
import os

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import replay
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local
from support.replay import local_fixture, replay_fixture

# Both images have the same shape, so items may share them; the map differs.
_SIGNATURE = {
  'after': tf.TensorSpec([40, 40], tf.uint8),
  'before': tf.TensorSpec([40, 40], tf.uint8),
  'map': tf.TensorSpec([300], tf.float32),
  'number': tf.TensorSpec([], tf.int64),
}


def _image(number):
  return np.full([40, 40], number, np.uint8)


class _Player:
  """Writes items that share images with their neighbors."""

  def __init__(self, table):
    self._writer = local_fixture.open_writer(
      table, priority=lambda: float(1 + self._number % 3)
    )
    self._number = 0
    self._before = self._writer.keep({0: _image(0)[None]})[0]

  def play(self, num_items):
    for _ in range(num_items):
      self._number += 1
      maps = np.full([300], self._number, np.float32)
      kept = self._writer.keep({0: _image(self._number)[None], 2: maps[None]})
      number = np.array([self._number])
      self._writer.put([kept[0], self._before, kept[2], number])
      self._before = kept[0]


_TABLES = {
  'uniform': replay.uniform(_SIGNATURE, 50, replay_fixture.NO_LIMIT),
  'prioritized': replay.prioritized(
    _SIGNATURE, 50, replay_fixture.NO_LIMIT, 0.7
  ),
  'queue': replay.queue(_SIGNATURE, 50),
}


def _learn(table):
  """Samples, and changes priorities."""
  drawn = local_fixture.sample(table, 5)
  table.update_priorities(drawn.keys, 1.0 + drawn.data['number'] % 7)
  return drawn


# Empty, partly filled, and full.
@pytest.mark.parametrize(
  ('name', 'num_items'),
  [('uniform', 0), ('queue', 20), *((name, 73) for name in _TABLES)],
)
def test_resumes_exactly(name, num_items, tmp_path):
  description = _TABLES[name]
  table = local.Table(description, seed=1)
  player = _Player(table)
  for _ in range(num_items):
    player.play(1)
    if table.status().size > 40:
      _learn(table)
  path = local.write(str(tmp_path), [(description, table.copy())])
  assert os.listdir(tmp_path) == [os.path.basename(path)]
  contents = local.read(str(tmp_path), description)
  restored = local.Table(description, seed=2)
  restored.restore(contents)
  assert restored.status() == table.status()
  going_on = _Player(restored)
  going_on.__dict__.update(
    {k: v for k, v in player.__dict__.items() if k != '_writer'}
  )
  for _ in range(30):
    player.play(5)
    going_on.play(5)
    tree.map_structure(
      np.testing.assert_array_equal, _learn(restored), _learn(table)
    )
  assert restored.status() == table.status()


def test_shared_arrays_are_saved_once_and_shared_again(tmp_path):
  description = _TABLES['uniform']
  table = local.Table(description, 0)
  _Player(table).play(30)
  path = local.write(str(tmp_path), [(description, table.copy())])
  # One image each, and one before the first.
  sizes = np.load(os.path.join(path, 'sizes_0.npy'))
  assert sizes.tolist() == [40 * 40] * 31
  contents = local.read(str(tmp_path), description)
  after, before, _, _ = contents.items.leaves
  assert all(a is b for a, b in zip(after[:-1], before[1:], strict=True))


@pytest.mark.parametrize('num_items', [0, 30])
def test_arrays_of_the_first_format_are_read(tmp_path, num_items):
  description = _TABLES['uniform']
  table = local.Table(description, 0)
  _Player(table).play(num_items)
  path = local.write(str(tmp_path), [(description, table.copy())])
  expected = local.read(str(tmp_path), description).items.leaves
  file = os.path.join(path, 'arrays_0.npy')
  np.save(file, np.load(file).reshape(-1, 40, 40))
  os.remove(os.path.join(path, 'sizes_0.npy'))
  with open(os.path.join(path, 'table.json'), 'r+') as opened:
    state = json.load(opened)
    opened.seek(0)
    json.dump({**state, 'format': 1}, opened, indent=2)
  found = local.read(str(tmp_path), description).items.leaves
  np.testing.assert_equal(
    [leaf.tolist() for leaf in found], [leaf.tolist() for leaf in expected]
  )


def test_may_have_the_actors(tmp_path):
  description = _TABLES['queue']
  table = local.Table(description, 0)
  player = _Player(table)
  player.play(30)
  local_fixture.sample(table, 4)
  contents = dataclasses.replace(table.copy(), actors=b'\x00who')
  local.write(str(tmp_path), [(description, contents)])
  read = local.read(str(tmp_path), description)
  assert (read.inserts, read.samples, read.actors) == (30, 4, b'\x00who')
  restored = local.Table(description, 0)
  restored.restore(read)
  assert restored.status().size == 26
  data = local_fixture.sample(restored, 26).data
  assert data['number'].tolist() == list(range(5, 31))


def test_no_snapshot_reads_none(tmp_path):
  description = _TABLES['uniform']
  assert local.read(str(tmp_path), description) is None
  assert local.read(str(tmp_path / 'none'), description) is None
  # A snapshot that was begun is not complete.
  (tmp_path / '.writing').mkdir()
  assert local.read(str(tmp_path), description) is None


def test_other_files_are_refused(tmp_path):
  (tmp_path / '0-restored').mkdir()
  (tmp_path / '0-restored' / 'DONE').touch()
  message = '0-restored cannot be read: FileNotFoundError: .*table.json'
  with pytest.raises(checkpointing.CheckpointError, match=message):
    local.read(str(tmp_path), _TABLES['uniform'])


@pytest.mark.parametrize(
  ('name', 'content', 'message'),
  [
    ('table.json', b'{', 'JSONDecodeError'),
    ('table.json', {'random': {'state': 1}}, 'random of a checkpoint .*Error'),
    ('which_1.npy', np.full([30], 31), 'IndexError'),
    ('arrays_0.npy', np.array([None] * 31), 'ValueError'),
  ],
)
def test_damages_are_named(tmp_path, name, content, message):
  description = _TABLES['uniform']
  table = local.Table(description, 0)
  _Player(table).play(30)
  path = local.write(str(tmp_path), [(description, table.copy())])
  file = os.path.join(path, name)
  if isinstance(content, dict):
    with open(file) as opened:
      content = json.dumps({**json.load(opened), **content}).encode()
  if isinstance(content, bytes):
    with open(file, 'wb') as opened:
      opened.write(content)
  else:
    np.save(file, content)
  with (
    pytest.raises(checkpointing.CheckpointError, match=message),
    local.reading('random of a checkpoint'),
  ):
    local.Table(description, 0).restore(local.read(str(tmp_path), description))


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'max_size': 51}, 'max_size: 50 there, 51 now'),
    (
      {'signature': {**_SIGNATURE, 'number': tf.TensorSpec([], tf.int32)}},
      r'signature: .*int64.* there, .*int32',
    ),
  ],
)
def test_differences_are_named(tmp_path, changes, message):
  description = _TABLES['uniform']
  local.write(
    str(tmp_path), [(description, local.Table(description, 0).copy())]
  )
  other = dataclasses.replace(description, **changes)
  with pytest.raises(checkpointing.CheckpointError, match=message):
    local.read(str(tmp_path), other)
