"""Tests of recordings: written while acting, and read again."""

import itertools
import json
import os
import pickle
import tracemalloc

import numpy as np
import pytest
from dm_env import specs as dm_env_specs

from repertory.components import offline
from repertory.components.config import settings
from repertory.components.offline import data_set
from support.replay import recorded_episodes
from support.replay.recorded_episodes import FIRST, LAST, MID, SPEC
from support.system import real_disk_errors

# Two slots: episodes 1, 2, 3 of 2, 1 and 3 steps; and one of 50.
_SLOTS = ([(1, 2, True), (2, 1, False), (3, 3, True)], [(7, 50, False)])


def _read(directory):
  """Returns the rows of all files, in the order of their names."""
  data = offline.open_data(str(directory))
  data.check(SPEC)
  return [r for steps in data.read(SPEC) for r in recorded_episodes.rows(steps)]


def test_episodes_are_read_as_recorded(tmp_path):
  # Slot 0 has 3 + 2 + 4 = 9 time steps, which are 8 steps after the first.
  recorded_episodes.write(tmp_path, _SLOTS, 8).close()
  assert _read(tmp_path) == [
    *recorded_episodes.expected(1, 2, True),
    *recorded_episodes.expected(2, 1),
    *recorded_episodes.expected(3, 3, True),
    # The other one is still open.
    *recorded_episodes.expected(7, 8, last=MID),
  ]
  data = offline.open_data(str(tmp_path))
  assert data.lengths.tolist() == [2, 1, 3, 8]
  (steps,) = data.read(SPEC)
  # The action of each time step; zero at the last one of a slot.
  assert steps.action.tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 0, *range(8), 0]


def test_num_episodes_limits_each_slot(tmp_path):
  writer = recorded_episodes.write(
    tmp_path, _SLOTS, 8, num_episodes=[2, 1], file_bytes=150
  )
  writer.close(keeps_open=False)
  assert _read(tmp_path) == [
    *recorded_episodes.expected(1, 2, True),
    *recorded_episodes.expected(2, 1),
  ]


def test_killed_runs_leave_complete_files(tmp_path):
  # A file may have the size of four time steps of ended episodes.
  writer = recorded_episodes.write(tmp_path, _SLOTS, 8, file_bytes=4 * 24)
  assert writer is not None  # It was never closed.
  found = _read(tmp_path)
  assert found[:5] == [
    *recorded_episodes.expected(1, 2, True),
    *recorded_episodes.expected(2, 1),
  ]
  # Half-written files of others are not read.
  (tmp_path / '.steps_000009.npz.1').write_bytes(b'half')
  assert _read(tmp_path) == found


def test_an_episode_longer_than_two_files_is_split(tmp_path):
  slots = ([(7, 50, False)], [(8, 70, False)])
  recorded_episodes.write(tmp_path, slots, 50, file_bytes=200).close()
  assert len(list(tmp_path.glob('*.npz'))) > 2
  found = _read(tmp_path)
  pairs = [
    (now[3:], after[3:])
    for now, after in itertools.pairwise(found)
    if after[0] != FIRST
  ]
  # No step is lost or duplicated.
  assert sorted(pairs) == [
    ([slot, t], [slot, t + 1]) for slot in (7, 8) for t in range(50)
  ]
  assert offline.open_data(str(tmp_path)).lengths.sum() == len(pairs)


def test_an_episode_of_two_files_stays_whole(tmp_path):
  num_slots = 3
  # Each time step has 24 bytes, and all together exceed two files.
  slots = [
    [(10 * slot + i, 14 + slot, True) for i in range(5)]
    for slot in range(num_slots)
  ]
  recorded_episodes.write(tmp_path, slots, 60, file_bytes=12 * 24).close(
    keeps_open=False
  )
  assert len(list(tmp_path.glob('*.npz'))) > 2
  found = _read(tmp_path)
  ended = [int(row[3]) for row in found if row[0] == LAST]
  assert len(ended) >= 2 * num_slots
  assert found == [
    row
    for number in ended
    for row in recorded_episodes.expected(number, 14 + number // 10, True)
  ]


def test_a_copy_continues_after_the_first_one(tmp_path):
  directory = recorded_episodes.prepare(tmp_path)
  writer = offline.RecordingWriter(directory, 'steps')
  stream = recorded_episodes.timesteps([[(7, 9, True)]])
  writer.begin(next(stream)[1])
  for _ in range(4):
    writer.add(*next(stream))
  copied = pickle.loads(pickle.dumps(writer))
  writer.close()
  for _ in range(5):
    copied.add(*next(stream))
  copied.close()
  assert [row[4] for row in _read(tmp_path)] == [*range(5), *range(4, 10)]
  assert offline.open_data(directory).lengths.tolist() == [4, 5]


def test_no_step_is_lost_if_the_disk_was_full_for_a_while(tmp_path):
  writer = recorded_episodes.write(tmp_path, _SLOTS, 2, file_bytes=4 * 24)
  stream = recorded_episodes.timesteps(_SLOTS)
  for _ in range(3):
    next(stream)
  with (
    real_disk_errors.file_size_limit(500),
    pytest.raises(offline.RecordingError) as caught,
  ):
    while True:
      writer.add(*next(stream))
  # Five time steps of ended episodes are more than four: those of episodes 1
  # and 2, with which slot 1 has six time steps. They follow 2 + 1 steps of slot
  # 0, and 5 of slot 1; then another step of slot 1 alone.
  assert caught.value.num_steps == 2 + 1 + 5
  assert not list(tmp_path.glob('*.npz')) + list(tmp_path.glob('.[!m]*'))
  writer.close()
  assert [row[3:] for row in _read(tmp_path) if row[3] == 7] == [
    [7, t] for t in range(6)
  ]


def test_memory_of_small_steps_is_that_of_the_data(tmp_path):
  num_steps = 5_000
  tracemalloc.start()
  try:
    writer = recorded_episodes.write(
      tmp_path, ([(1, num_steps, True)],), num_steps - 1, file_bytes=10**5
    )
    used, _ = tracemalloc.get_traced_memory()
    writer.close()
  finally:
    tracemalloc.stop()
  # Each time step has 24 bytes: the episode is less than two files.
  assert used < 2 * 24 * num_steps
  assert len(list(tmp_path.glob('*.npz'))) == 1


def test_only_what_is_written_is_copied(tmp_path):
  spec = SPEC._replace(observations=dm_env_specs.Array((64, 64), np.uint8))
  recorded_episodes.prepare(tmp_path, spec)
  file_rows, image = 128, np.zeros([8, 64, 64], np.uint8)
  writer = offline.RecordingWriter(
    str(tmp_path), 'steps', file_bytes=file_rows * 64 * 64
  )
  # Only the first slot has episodes that end.
  stream = recorded_episodes.timesteps(
    [[(1, 9, True)] * 20, *[[(7, 200, True)]] * 7]
  )
  tracemalloc.start()
  try:
    writer.begin(next(stream)[1]._replace(observation=image.copy()))
    for _ in range(180):
      action, timestep = next(stream)
      writer.add(action, timestep._replace(observation=image.copy()))
    _, peak = tracemalloc.get_traced_memory()
  finally:
    tracemalloc.stop()
  assert len(list(tmp_path.glob('*.npz'))) == 1
  assert peak < 1.3 * 180 * image.nbytes


def test_images_are_compressed(tmp_path):
  spec = SPEC._replace(observations=dm_env_specs.Array((64, 64), np.uint8))
  recorded_episodes.prepare(tmp_path, spec)
  writer = offline.RecordingWriter(str(tmp_path), 'steps')
  stream = recorded_episodes.timesteps([[(1, 30, True)]])
  image = np.zeros([1, 64, 64], np.uint8)
  writer.begin(next(stream)[1]._replace(observation=image))
  for _ in range(30):
    action, timestep = next(stream)
    writer.add(action, timestep._replace(observation=image))
  writer.close()
  (path,) = tmp_path.glob('*.npz')
  assert path.stat().st_size < 31 * 64 * 64 / 10
  (steps,) = offline.open_data(str(tmp_path)).read(spec)
  assert steps.observation.shape == (31, 64, 64)
  whole = path.read_bytes()
  middle = whole.index(b'observation.npy') + 80
  path.write_bytes(whole[:middle] + b'?' * 9 + whole[middle + 9 :])
  with pytest.raises(offline.DataError, match=r'000000\.npz is damaged'):
    list(offline.open_data(str(tmp_path)).read(spec))


def test_returns_of_all_time_steps():
  steps = offline.DataSetSteps(
    step_type=np.array([FIRST, MID, LAST, FIRST, MID, FIRST, LAST, MID, MID]),
    # Rewards and discounts at FIRST are ignored.
    reward=np.array([99, 4, 8, 99, 3, 99, 5, 99, 7], np.float32),
    discount=np.array([0, 0.5, 0, 0, 1, 0, 1, 0, 1], np.float32),
    observation=(),
    action=(),
  )
  expected = [
    # One of two steps: 4 + 0.9 · 0.5 · 8, and 8.
    *(7.6, 8, 0),
    # An episode that was truncated after a step.
    *(3, 0),
    # One of a step, and a part of another one.
    *(5, 0),
    *(7, 0),
  ]
  np.testing.assert_allclose(
    offline.discounted_returns(steps, 0.9), expected, rtol=1e-6
  )


class TestRefusals:
  def test_a_folder_of_other_recordings(self, tmp_path):
    recorded_episodes.prepare(tmp_path, agent='dqn')
    with pytest.raises(settings.SettingError, match="agent is 'dqn' there"):
      recorded_episodes.prepare(tmp_path, agent='sac')

  def test_a_folder_of_something_else(self, tmp_path):
    (tmp_path / 'thesis.tex').write_text('')
    with pytest.raises(settings.SettingError, match=r'thesis\.tex'):
      recorded_episodes.prepare(tmp_path)

  @pytest.mark.parametrize(
    ('spec', 'message'),
    [
      (
        SPEC._replace(observations=dm_env_specs.Array((3,), np.float32)),
        r"'observation'.*\(3,\); got float32 of shape \(2,\)",
      ),
      (
        SPEC._replace(observations=dm_env_specs.Array((2,), np.int64)),
        'int64 of shape',
      ),
      (
        SPEC._replace(observations={'x': SPEC.observations}),
        'observation/x, .*; got action, discount, observation, reward, of',
      ),
      (
        SPEC._replace(actions=dm_env_specs.DiscreteArray(2, np.int32)),
        r'\[0, 1\]; got 2',
      ),
    ],
  )
  def test_another_environment(self, tmp_path, spec, message):
    recorded_episodes.write(tmp_path, _SLOTS, 8).close()
    with pytest.raises(offline.DataError, match=message):
      offline.open_data(str(tmp_path)).check(spec)

  def test_damages_are_named(self, tmp_path):
    recorded_episodes.write(tmp_path, _SLOTS, 8).close()
    (path,) = tmp_path.glob('*.npz')
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(offline.DataError, match=r'000000\.npz is damaged'):
      offline.open_data(str(tmp_path))
    with path.open('wb') as file:
      np.save(file, np.zeros([3]))
    with pytest.raises(offline.DataError, match='damaged: File is not a zi'):
      offline.open_data(str(tmp_path))
    np.savez(path, step_type=np.int32([0, 2]), reward=np.zeros([2]))
    with pytest.raises(offline.DataError, match="has no column 'action'"):
      offline.open_data(str(tmp_path)).check(SPEC)
    np.savez(path, reward=np.zeros([2]))
    with pytest.raises(offline.DataError, match="no column 'step_type'"):
      offline.open_data(str(tmp_path))
    path.unlink()
    with pytest.raises(offline.DataError, match='is empty'):
      offline.open_data(str(tmp_path))
    path = tmp_path / 'manifest.json'
    content = json.loads(path.read_text())
    for text, problem in (
      (json.dumps({**content, 'spec': {'reward': {}}}), "KeyError: 'shape'"),
      ('{"format": 1}', "KeyError: 'agent'"),
      ('[1]', 'TypeError: '),
      ('{', 'Expecting property name'),
    ):
      path.write_text(text)
      with pytest.raises(
        offline.DataError, match=f'that cannot be read: .*{problem}'
      ):
        offline.open_data(str(tmp_path))
    path.write_text(json.dumps({**content, 'format': 2}))
    with pytest.raises(offline.DataError, match=r'of format 1.*got 2'):
      offline.open_data(str(tmp_path))
    os.remove(tmp_path / 'manifest.json')
    with pytest.raises(
      offline.DataError, match=r'must have a manifest.*an empty'
    ):
      offline.open_data(str(tmp_path))
    with pytest.raises(offline.DataError, match='folder; got nothing'):
      offline.open_data(str(tmp_path / 'nowhere'))

  @pytest.mark.parametrize('name', ['manifest.json', 'main_data.hdf5', 'npz'])
  def test_a_fifo_is_refused_at_once(self, tmp_path, name):
    recorded_episodes.write(tmp_path, _SLOTS, 8).close()
    if name == 'npz':
      (path,) = tmp_path.glob('*.npz')
    else:
      (tmp_path / 'manifest.json').unlink()
      path = tmp_path / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(offline.DataError, match=path.name):
      offline.open_data(str(tmp_path))

  @pytest.mark.parametrize(
    ('column', 'change', 'message'),
    [
      ('discount', {2: 7}, r"'discount' .*out of \[0, 1\]; got 7"),
      # At FIRST they are ignored.
      ('discount', {0: 7}, None),
      ('reward', {0: np.nan}, None),
      ('reward', lambda x: np.where(np.arange(10), x, np.float64(1e300)), None),
      ('reward', {1: np.nan}, "'reward' .*not finite; got nan"),
      ('discount', lambda x: x[:, None], r"'discount'.*of shape \(1,\)"),
      ('reward', lambda x: x.astype(str), "'reward'.*got <U"),
      ('reward', lambda x: x[0], 'the same length; got '),
      ('step_type', {2: 7}, "'step_type' .* none of 0, 1 and 2 .*; got 7"),
      ('step_type', lambda x: x.astype(float), "'step_type' of.*; got float64"),
      ('step_type', lambda x: x[:, None], r"'step_type' of .*shape \(\d+, 1\)"),
      ('step_type', lambda x: x.astype(np.uint8), None),
      ('action', {2: 100}, r"'action' out of .*\[0, 99\]; got 100"),
      ('action', {9: -100}, None),  # At LAST it is ignored.
    ],
  )
  def test_invalid_values(self, tmp_path, column, change, message):
    recorded_episodes.write(tmp_path, ([(1, 9, True)],), 9).close()
    (path,) = tmp_path.glob('*.npz')
    columns = dict(np.load(path))
    if isinstance(change, dict):
      for place, value in change.items():
        columns[column][place] = value
    else:
      columns[column] = change(columns[column])
    np.savez(path, **columns)
    if message is None:
      assert len(_read(tmp_path)) == 10
      return
    # Before anything is learned: `read` is not called.
    with pytest.raises(offline.DataError, match=rf'000000\.npz .*{message}'):
      offline.open_data(str(tmp_path)).check(SPEC)


def test_actions_that_their_masks_forbid_are_refused():
  spec = SPEC._replace(
    observations={
      'action_mask': dm_env_specs.Array((2, 3), np.bool_),  # Combinations.
      'board': dm_env_specs.Array((), np.float32),
    },
    actions=dm_env_specs.BoundedArray((2,), np.int32, [1, 0], [2, 2]),
    rewards=dm_env_specs.Array((), np.float32),
    discounts=dm_env_specs.BoundedArray((), np.float32, 0, 1),
  )
  masks = np.zeros([4, 2, 3], bool)
  masks[:3, 1, 2] = masks[1, 0] = True
  actions = np.array([[2, 2], [1, 1], [2, 2], [1, 0]], np.int32)
  columns = {
    'reward': np.zeros([4], np.float32),
    'discount': np.ones([4], np.float32),
    'action_mask': masks,
    'board': np.zeros([4], np.float32),
    'action': actions,
  }
  # The last time step has no action.
  step_type = np.array([FIRST, MID, MID, LAST], np.int32)
  data_set.convert('here', spec, step_type, columns)
  actions[2] = 2, 1
  with pytest.raises(
    offline.DataError, match=r"'action_mask' forbids: \[2 1\]"
  ):
    data_set.convert('here', spec, step_type, columns)
