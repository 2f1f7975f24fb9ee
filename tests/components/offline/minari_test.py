"""Tests of Minari data sets, on files with its exact layout."""

import json

import h5py
import numpy as np
import pytest
import tree
from dm_env import specs as dm_env_specs

from repertory.components import offline
from support.replay.recorded_episodes import FIRST, LAST, MID, SPEC

# Minari's layout: episodes by name, growing columns, and spaces.
_SPACES = {
  'observation_space': '{"type": "Box", "dtype": "float64", "shape": [2]}',
  'action_space': '{"type": "Discrete", "dtype": "int64", "start": 0, "n": 4}',
}


def _write(directory, episodes, metadata=_SPACES):
  """Writes a data set.

  Args:
    episodes: Dictionaries of columns; nested ones become groups, and tuples
      groups of `_index_<i>`.
  """
  folder = directory / 'data'
  folder.mkdir(parents=True)
  with h5py.File(folder / 'main_data.hdf5', 'w', track_order=True) as file:
    for number, episode in enumerate(episodes):
      group = file.create_group(f'episode_{number}')
      group.attrs['id'] = number
      group.attrs['total_steps'] = len(episode['rewards'])
      _fill(group, episode)
      group.create_dataset('infos', (0,), dtype=h5py.special_dtype(vlen=str))
  counts = {
    'total_episodes': len(episodes),
    'total_steps': sum(len(episode['rewards']) for episode in episodes),
  }
  (folder / 'metadata.json').write_text(
    json.dumps({'data_format': 'hdf5', **counts, **metadata})
  )
  return offline.open_data(str(directory))


def _fill(group, columns):
  for name, column in columns.items():
    if isinstance(column, tuple):
      column = {f'_index_{i}': one for i, one in enumerate(column)}
    if isinstance(column, dict):
      _fill(group.create_group(name), column)
      continue
    column = np.asarray(column)
    shape = (None, *column.shape[1:])
    group.create_dataset(name, data=column, chunks=True, maxshape=shape)


def _read(data, spec=SPEC):
  """Returns all episodes, concatenated."""
  data.check(spec)
  episodes = list(data.read(spec))
  return tree.map_structure(lambda *x: np.concatenate(x), *episodes)


def _episode(length, terminates, **changes):
  ends = np.arange(length) == length - 1
  return {
    'observations': np.arange(2.0 * (length + 1)).reshape(-1, 2),
    'actions': np.arange(length),
    'rewards': 0.5 + np.arange(length),
    'terminations': ends & terminates,
    'truncations': ends & (not terminates),
    **changes,
  }


def test_episodes_of_both_kinds_of_end(tmp_path):
  data = _write(tmp_path, [_episode(3, True), _episode(2, False)])
  steps = _read(data)
  assert data.lengths.tolist() == [3, 2]
  assert steps.step_type.tolist() == [FIRST, MID, MID, LAST, FIRST, MID, LAST]
  assert steps.reward.tolist() == [0, 0.5, 1.5, 2.5, 0, 0.5, 1.5]
  # The first one terminates, the other is truncated.
  assert steps.discount.tolist() == [1, 1, 1, 0, 1, 1, 1]
  assert steps.action.tolist() == [0, 1, 2, 0, 0, 1, 0]
  assert steps.observation[:, 0].tolist() == [0, 2, 4, 6, 0, 2, 4]
  # Doubles get the dtype of the environment.
  assert steps.observation.dtype == steps.reward.dtype == np.float32


def test_nests(tmp_path):
  spec = SPEC._replace(
    observations={
      'camera': dm_env_specs.Array((2, 2), np.uint8),
      'joints': (SPEC.observations, dm_env_specs.Array((), np.float32)),
    }
  )
  observations = {
    'camera': np.arange(8, dtype=np.uint8).reshape(2, 2, 2),
    'joints': (np.ones([2, 2]), np.array([3.0, 4.0])),
  }
  data = _write(tmp_path, [_episode(1, True, observations=observations)])
  steps = _read(data, spec)
  assert steps.observation['camera'][1].tolist() == [[4, 5], [6, 7]]
  assert steps.observation['joints'][1].tolist() == [3, 4]
  with pytest.raises(
    offline.DataError,
    match=r'must have .* observations, .*; got actions, observations/camera',
  ):
    data.check(SPEC)


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    (
      {'observations': np.zeros([4, 3])},
      r"'observations'.*got float64 .*\(3,\)",
    ),
    ({'actions': np.zeros([3])}, "'actions'.*got float64"),
    (
      {'actions': {'x': np.zeros([3])}},
      'must have .* actions, .*; got actions/x, ',
    ),
  ],
)
def test_another_environment_is_refused(tmp_path, changes, message):
  data = _write(tmp_path, [_episode(3, True, **changes)])
  with pytest.raises(offline.DataError, match=message):
    data.check(SPEC)


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    (
      {'terminations': [True, False, False]},
      "'terminations' must be false before the last step; got step 1 of 3",
    ),
    (
      {'truncations': [False, True, False]},
      "'truncations' must be false before the last step; got step 2 of 3",
    ),
    (
      {'terminations': [0.0, 0.0, np.nan]},
      "'terminations' of booleans, one per step; got float64 .*[(]3,[)]",
    ),
    ({'terminations': [0, 0, 7]}, "'terminations' of booleans.* such as 7"),
    ({'truncations': np.zeros([3, 1], bool)}, "'truncations' .*bool .*[(]3, 1"),
    ({'rewards': np.zeros([3, 1])}, r"'rewards'.*got float64 .*\(1,\)"),
    (
      {'observations': np.zeros([3, 2])},
      "'observations' must have 4 rows; got 3",
    ),
    ({'actions': [0, 100, 1]}, r"'actions' out of .*\[0, 99\]; got 100"),
    ({'rewards': [0.0, np.inf, 0.0]}, "'rewards' .* are not finite; got inf"),
  ],
)
def test_invalid_episodes_are_named(tmp_path, changes, message):
  data = _write(tmp_path, [_episode(2, True), _episode(3, True, **changes)])
  with pytest.raises(offline.DataError, match=f'episode_1.*{message}'):
    list(data.read(SPEC))


def test_damages_are_named(tmp_path):
  data = _write(tmp_path, [_episode(3, True)])
  path = tmp_path / 'data' / 'main_data.hdf5'
  with h5py.File(path, 'a') as file:
    del file['episode_0/terminations']
  with pytest.raises(offline.DataError, match=r'damaged.*terminations'):
    list(data.read(SPEC))
  path.write_bytes(path.read_bytes()[:600])
  with pytest.raises(offline.DataError, match=r'damaged: .*main_data\.hdf5'):
    offline.open_data(str(tmp_path))
  with h5py.File(path, 'w'):
    pass
  with pytest.raises(offline.DataError, match='is empty'):
    offline.open_data(str(tmp_path))


def test_missing_episodes_are_named(tmp_path):
  data = _write(tmp_path, [_episode(3, True)], {'total_episodes': 2})
  with pytest.raises(offline.DataError, match=r'total_episodes = 1, got 2'):
    data.check(SPEC)


def test_spaces_that_start_elsewhere_are_refused(tmp_path):
  space = _SPACES['action_space'].replace('"start": 0', '"start": 1')
  data = _write(tmp_path, [_episode(3, True)], {'action_space': space})
  with pytest.raises(offline.DataError, match='start at 0; got 1'):
    data.check(SPEC)


@pytest.mark.parametrize(
  ('content', 'message'),
  [
    ({'data_format': 'arrow'}, "must be in HDF5, .*'hdf5'; got 'arrow'"),
    ({}, 'must have a manifest.* got other files, such as'),
    ([], r'cannot be read.* must be a JSON object; got \[\]'),
  ],
)
def test_other_formats_are_named(tmp_path, content, message):
  folder = tmp_path / 'data'
  (folder / '0').mkdir(parents=True)  # Minari's layout: one folder per episode.
  (folder / '0' / 'part-0.arrow').touch()
  (folder / 'metadata.json').write_text(json.dumps(content))
  with pytest.raises(offline.DataError, match=message):
    offline.open_data(str(tmp_path))
