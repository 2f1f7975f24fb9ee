"""Tests of frame stacks in replay tables, whose frames are stored once."""

import dataclasses
import itertools
import json
import os
import pickle

import dm_env
import numpy as np
import tree
from dm_env import specs as dm_specs

from repertory.components import adders, replay, specs
from repertory.components.replay import local
from repertory.components.replay.local import stored_arrays
from repertory.environments import wrappers
from repertory.environments.batches import batch

_NUM_FRAMES, _EPISODE = 4, 7
# Five episodes; a further step starts each but the first.
_NUM_STEPS = 39
# In two environments; the first frame of an episode fills its stack.
_NUM_SEEN = 2 * 5 * (_EPISODE + _NUM_FRAMES)
_ITEMS = adders.Transitions(n_step=2, discount=0.9)


class _Screens(dm_env.Environment):
  """Images `[40, 40, 2]` of noise."""

  def __init__(self, seed):
    self._random = np.random.default_rng(seed)
    self._time = 0

  def reset(self):
    self._time = 0
    return dm_env.restart(self._draw())

  def step(self, action):
    self._time += 1
    if self._time == _EPISODE:
      return dm_env.termination(1.0, self._draw())
    return dm_env.transition(1.0, self._draw())

  def observation_spec(self):
    return dm_specs.BoundedArray((40, 40, 2), np.uint8, 0, 255, 'screen')

  def action_spec(self):
    return dm_specs.DiscreteArray(2)

  def _draw(self):
    return self._random.integers(0, 256, [40, 40, 2], np.uint8)


def _make_batch():
  return wrappers.BatchFrameStack(
    batch.EnvironmentBatch([_Screens(seed) for seed in (1, 2)]),
    _NUM_FRAMES,
  )


def _play(writer):
  """Adds the steps of two environments; closes the writer."""
  environment = _make_batch()
  adder = _ITEMS.make_adder(writer, 2)
  adder.add_first(environment.reset())
  for _ in range(_NUM_STEPS):
    actions = np.zeros([2], np.int32)
    adder.add(actions, environment.step(actions))
  adder.flush()
  adder.close()


def _make_table(num_frames=None, **changes):
  """Describes a queue of transitions, of which stacks are stored as frames."""
  spec = specs.make_environment_spec(_make_batch())
  table = replay.queue(_ITEMS.signature(spec), 1000)
  if num_frames is None:
    num_frames = _ITEMS.num_frames(spec)
  return dataclasses.replace(table, num_frames=num_frames, **changes)


def _fill(table):
  """Fills a table of this process."""
  filled = local.Table(table, seed=0)
  _play(local.LocalWriter(filled, max_pending_items=1000))
  return filled


def _stored_frames(table):
  """Returns the frames of a table of this process, each once."""
  leaves = table.copy().items.leaves
  stored = itertools.chain(*(leaves[i] for i in (0, 4)))
  return {id(frame): frame for one in stored for frame in one.frames}


def _count_items(table):
  return table.status().size


def test_items_are_the_same_and_each_frame_is_stored_once():
  table, whole = _fill(_make_table()), _fill(_make_table(()))
  size = _count_items(table)
  assert size == _count_items(whole) == 2 * 5 * _EPISODE
  assert len(_stored_frames(table)) == _NUM_SEEN
  for frame in _stored_frames(table).values():
    assert frame.shape == (40, 40, 2)
  expected = whole.sample(size, 0).data
  tree.map_structure(
    np.testing.assert_array_equal, table.sample(size, 0).data, expected
  )


def test_other_contents_are_stored_as_they_are():
  random = np.random.default_rng(3)
  splitter = stored_arrays.Splitter(_NUM_FRAMES)
  before = np.zeros([2, 5, 8], np.int64)
  for _ in range(500):
    # Frames often, but not always, move by one place.
    values = random.integers(0, 2, [2, 5, 8])
    if random.random() < 0.7:
      values[..., :6] = before[..., 2:]
    before = values
    found = list(map(np.asarray, splitter.split(values)))
    np.testing.assert_array_equal(found, values)


def test_snapshots_have_each_frame_once(tmp_path):
  description = _make_table()
  table = _fill(description)
  local.write(str(tmp_path), [(description, table.copy())])
  contents = local.read(str(tmp_path), description)
  restored = local.Table(description, seed=5)
  restored.restore(contents)
  assert len(_stored_frames(restored)) == _NUM_SEEN
  size = _count_items(table)
  tree.map_structure(
    np.testing.assert_array_equal,
    restored.sample(size, 0).data,
    table.sample(size, 0).data,
  )


def test_snapshots_of_whole_stacks_are_read_and_saved_again(tmp_path):
  old, description = _make_table(()), _make_table()
  table = _fill(old)
  for number, written in enumerate((old, description)):
    directory = str(tmp_path / str(number))
    path = local.write(directory, [(written, table.copy())])
    if written is old:  # Format 2 differs in nothing else.
      state = os.path.join(path, 'table.json')
      with open(state) as file:
        content = json.load(file)
      with open(state, 'w') as file:
        json.dump({**content, 'format': 2}, file)
    table = local.Table(description, seed=5)
    table.restore(local.read(directory, description))
    # Each time step's array is saved once, and no frames.
    sizes = np.load(os.path.join(path, 'sizes_0.npy'))
    assert sizes.tolist() == [40 * 40 * 8] * 2 * (_NUM_STEPS + 1)
  size = _count_items(table)
  tree.map_structure(
    np.testing.assert_array_equal,
    table.sample(size, 0).data,
    _fill(old).sample(size, 0).data,
  )


def test_snapshots_may_have_whole_stacks_and_frames(tmp_path):
  old, description = _make_table(()), _make_table()
  local.write(str(tmp_path), [(old, _fill(old).copy())])
  table = local.Table(description, seed=5)
  table.restore(local.read(str(tmp_path), description))
  _play(local.LocalWriter(table, max_pending_items=1000))
  local.write(str(tmp_path), [(description, table.copy())])
  sizes = np.load(tmp_path / 'snapshot' / 'sizes_0.npy').tolist()
  assert sizes.count(40 * 40 * 8) == 2 * (_NUM_STEPS + 1)
  assert sizes.count(40 * 40 * 2) == _NUM_SEEN
  restored = local.Table(description, seed=5)
  restored.restore(local.read(str(tmp_path), description))
  size = _count_items(table)
  tree.map_structure(
    np.testing.assert_array_equal,
    restored.sample(size, 0).data,
    table.sample(size, 0).data,
  )


def test_specs_declare_stacks():
  image = _Screens(0).observation_spec()
  stack = wrappers.FrameStack(_Screens(0), 4).observation_spec()
  assert stack.num_frames == pickle.loads(pickle.dumps(stack)).num_frames == 4
  assert stack.replace(name='other').num_frames == 4
  assert (
    stack
    == wrappers.BatchFrameStack(
      batch.EnvironmentBatch([_Screens(0)]), 4
    ).observation_spec()
  )
  assert stack.shape == (*image.shape[:2], 8)


def test_memory_counts_frames_once():
  table, whole = _make_table(), _make_table(())
  size, frame = 40 * 40 * 8, 40 * 40 * 2
  expected = whole.item_bytes(False) - (size - frame) + 2 * 112
  assert table.item_bytes(in_server=False) == expected
  assert table.item_bytes(in_server=True) == whole.item_bytes(True)
