"""Tests of checkpoints, in particular after crashes."""

import builtins
import os
import shutil
from typing import Any

import numpy as np
import pytest

from repertory.components.checkpoints import checkpointing

# Names as TensorFlow gives them.
ARRAYS = {
  'policy/0000/mlp/linear_0/w:0': np.arange(6, dtype=np.float32).reshape(2, 3),
  'empty': np.zeros((0, 4), np.float64),
  'learner_steps': np.asarray(2**40, np.int64),
  'flags': np.array([True, False]),
}
STATE = {'counts': {'steps': 12, 'episodes': 3}, 'name': 'é', 'none': None}


@pytest.fixture(name='directory')
def _directory(tmp_path):
  return str(tmp_path / 'made' / 'checkpoints')


@pytest.fixture(name='replay_path')
def _replay_path(tmp_path):
  path = tmp_path / 'replay'
  (path / 'nested').mkdir(parents=True)
  (path / 'tables.tfrecord').write_bytes(b'tables' * 50)
  (path / 'nested' / 'chunks.tfrecord').write_bytes(b'chunks' * 50)
  (path / 'DONE').write_bytes(b'')
  return str(path)


def _arrays(number):
  return {'w': np.full((2, 2), number, np.float32)}


def _save(directory, *numbers, max_to_keep=2, **settings):
  """Saves checkpoints of these numbers; returns the last one's path."""
  checkpointer = checkpointing.Checkpointer(directory, max_to_keep)
  path = ''
  for number in numbers:
    path = checkpointer.save(_arrays(number), {'number': number}, **settings)
  return path


def _load(directory) -> Any:
  return checkpointing.Checkpointer(directory).load()


def _loaded_number(directory):
  """Returns the number of the loaded checkpoint, which is checked."""
  checkpoint = _load(directory)
  number = checkpoint.state['number']
  np.testing.assert_array_equal(checkpoint.arrays['w'], np.full((2, 2), number))
  return number


def _read_tree(path):
  """Returns the contents of all files under a folder."""
  found = {}
  for root, _, names in os.walk(path):
    for name in names:
      file = os.path.join(root, name)
      with open(file, 'rb') as opened:
        found[os.path.relpath(file, path)] = opened.read()
  return found


def test_round_trip(directory):
  path = checkpointing.Checkpointer(directory).save(ARRAYS, STATE)
  checkpoint = _load(directory)
  assert checkpoint.path == path
  assert os.path.dirname(path) == directory
  assert checkpoint.state == STATE
  assert checkpoint.replay_path is None
  assert checkpoint.arrays.keys() == ARRAYS.keys()
  for name, array in ARRAYS.items():
    assert checkpoint.arrays[name].dtype == array.dtype
    np.testing.assert_array_equal(checkpoint.arrays[name], array)


def test_nothing_is_there(directory):
  assert _load(directory) is None
  assert not os.path.exists(directory)  # Looking leaves no trace.


def test_keeps_the_newest(directory):
  _save(
    directory, *range(11), max_to_keep=3
  )  # The tenth sorts after the ninth.
  names = ['00000009', '00000010', '00000011']
  assert sorted(os.listdir(directory)) == names
  assert _loaded_number(directory) == 10


def test_leftovers_are_ignored_and_removed(directory):
  _save(directory, 1)
  for prefix in ('.writing-', '.removing-'):
    os.makedirs(os.path.join(directory, f'{prefix}00000002', 'replay'))
  assert _loaded_number(directory) == 1
  checkpointing.Checkpointer(directory).remove_unfinished()
  assert os.listdir(directory) == ['00000001']


def test_a_checkpoint_that_makes_way_is_not_missed(directory, monkeypatch):
  """A reader gets the newer one, and no error, while another one writes."""
  _save(directory, 1, max_to_keep=1)
  listdir, is_first = os.listdir, [True]

  def list_and_overtake(path):
    names = listdir(path)
    if is_first.pop() if is_first else False:
      _save(directory, 2, max_to_keep=1)
    return names

  monkeypatch.setattr(os, 'listdir', list_and_overtake)
  assert _loaded_number(directory) == 2


class Crash(BaseException):
  """Simulated crash; not an `Exception`, so that no code catches it."""


class Crasher:
  """Counts file operations and crashes before one of them."""

  NAMES = ('mkdir', 'fsync', 'rename', 'link', 'unlink', 'rmdir')

  def __init__(self, monkeypatch):
    self._crash_at = None
    self.calls = []
    for name in self.NAMES:
      monkeypatch.setattr(os, name, self._wrap(name, getattr(os, name)))
    monkeypatch.setattr(builtins, 'open', self._wrap('open', open))
    write_array = self._wrap('write_array', np.lib.format.write_array)
    monkeypatch.setattr(np.lib.format, 'write_array', write_array)

  def arm(self, crash_at):
    self._crash_at, self.calls = crash_at, []

  def disarm(self):
    self._crash_at = None

  def _wrap(self, name, function):
    def wrapper(*args, **kwargs):
      if self._crash_at is not None:
        if len(self.calls) == self._crash_at:
          raise Crash
        self.calls.append(name)
      return function(*args, **kwargs)

    return wrapper


def _assert_all_are_whole(directory, copy):
  """Loads each checkpoint, with all newer ones removed."""
  shutil.copytree(directory, copy)
  while checkpoint := _load(copy):
    shutil.rmtree(checkpoint.path)


def test_crash_between_any_two_steps_leaves_the_last_good_one(
  tmp_path, replay_path, monkeypatch
):
  """The previous one is valid until the renaming, then the new one."""
  crasher = Crasher(monkeypatch)
  loaded = []
  for crash_at in range(1000):
    directory = str(tmp_path / f'crash{crash_at}')
    _save(directory, 1, 2, replay_path=replay_path)
    crasher.arm(crash_at)
    try:
      _save(directory, 3, replay_path=replay_path)
    except Crash:
      crasher.disarm()
    else:
      break
    loaded.append(_loaded_number(directory))
    expected = 3 if 'rename' in crasher.calls else 2
    assert loaded[-1] == expected, crasher.calls
    checkpoint = _load(directory)
    assert _read_tree(checkpoint.replay_path) == _read_tree(replay_path)
    _assert_all_are_whole(directory, str(tmp_path / f'copy{crash_at}'))
    # Saving continues normally.
    _save(directory, 4, replay_path=replay_path)
    assert _loaded_number(directory) == 4
    assert len(os.listdir(directory)) == 2
  # All kinds of steps came, and the crashes lay on both sides of the renaming.
  assert {*Crasher.NAMES, 'open', 'write_array'} == set(crasher.calls)
  assert len(loaded) == len(crasher.calls) > 10
  assert set(loaded) == {2, 3}


def test_all_is_synced_before_it_gets_its_name(
  directory, replay_path, monkeypatch
):
  """Otherwise the name could survive a power cut, and the contents not."""
  synced, renamed = [], []
  fsync, rename = os.fsync, os.rename

  def note_fsync(descriptor):
    synced.append(os.readlink(f'/proc/self/fd/{descriptor}'))
    fsync(descriptor)

  def note_rename(source, destination):
    renamed.append((source, list(synced)))
    rename(source, destination)

  monkeypatch.setattr(os, 'fsync', note_fsync)
  monkeypatch.setattr(os, 'rename', note_rename)
  contents = _read_tree(replay_path)
  _save(directory, 1, replay_path=replay_path)
  ((temporary, before),) = renamed
  names = ['', 'arrays.npz', 'state.json', 'checksums.json']
  names += [os.path.join('replay', name) for name in contents]
  for name in names:
    assert os.path.join(temporary, name).rstrip('/') in before
  assert synced[-1] == directory


@pytest.mark.parametrize(
  ('name', 'is_folder'),
  [('notes.txt', False), ('²', True), ('000000007', True)],
)
def test_what_others_put_there_is_no_checkpoint(directory, name, is_folder):
  stray = os.path.join(directory, name)
  os.makedirs(stray if is_folder else directory)
  if not is_folder:
    with open(stray, 'w') as file:
      file.write('mine')
  assert _load(directory) is None
  path = _save(directory, 1, 2, 3)
  assert os.path.basename(path) == '00000003'
  assert _loaded_number(directory) == 3
  assert sorted(os.listdir(directory)) == sorted(['00000002', '00000003', name])


def test_a_folder_with_the_name_of_a_checkpoint_is_refused(directory):
  _save(directory, 1)
  os.makedirs(os.path.join(directory, '20240101'))
  with pytest.raises(
    checkpointing.CheckpointError,
    match=r'no checksums.json.*Restore it from a copy.*checkpoint 00000001',
  ):
    _load(directory)


def test_place_replay(tmp_path, replay_path):
  directory = str(tmp_path / 'made' / 'served')
  contents = _read_tree(replay_path)
  for _ in range(2):  # Existing contents are replaced.
    checkpointing.prepare_replay(replay_path, directory)
    (name,) = os.listdir(directory)
    assert _read_tree(os.path.join(directory, name)) == contents
    with open(os.path.join(directory, 'old'), 'w'):
      pass
  checkpointing.prepare_replay(None, directory)
  assert os.listdir(directory) == []
  assert _read_tree(replay_path) == contents
