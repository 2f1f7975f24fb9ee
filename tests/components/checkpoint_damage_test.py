"""Tests that damaged checkpoints are refused and do no harm."""

import io
import json
import os
import pickle
import shutil
import zlib

import numpy as np
import pytest

from repertory.components.checkpoints import checkpointing

_REPLAY_FILES = (
  os.path.join('replay', 'DONE'),
  os.path.join('replay', 'tables.tfrecord'),
  os.path.join('replay', 'nested', 'chunks.tfrecord'),
)
_FILES = ('arrays.npz', 'state.json', 'checksums.json', *_REPLAY_FILES)


@pytest.fixture(name='directory')
def _directory(tmp_path):
  return str(tmp_path / 'checkpoints')


@pytest.fixture(name='path')
def _path(directory, tmp_path):
  """The newer of two checkpoints, with replay."""
  path = ''
  for number in (1, 2):
    # Separate files: hard links would share the damage.
    replay_path = tmp_path / f'replay{number}'
    (replay_path / 'nested').mkdir(parents=True)
    (replay_path / 'tables.tfrecord').write_bytes(b'tables' * 5)
    (replay_path / 'nested' / 'chunks.tfrecord').write_bytes(b'chunks' * 5)
    (replay_path / 'DONE').write_bytes(b'')
    path = checkpointing.Checkpointer(directory).save(
      {'w': np.full((2, 2), number, np.float32)},
      {'number': number, 'name': 'é'},
      str(replay_path),
    )
  return path


def _load(directory, **settings):
  return checkpointing.Checkpointer(directory).load(**settings)


def _assert_refused(directory, path, *words, **settings):
  with pytest.raises(checkpointing.CheckpointError) as error:
    _load(directory, **settings)
  message = str(error.value)
  for expected in (path, *words):
    assert expected in message
  # The message advises.
  assert 'start afresh' in message


def _read(file):
  with open(file, 'rb') as opened:
    return opened.read()


def _write(file, content):
  with open(file, 'wb') as opened:
    opened.write(content)


def _rewrite_checksums(path, name):
  """Updates a file's entry in the list of checksums."""
  listed = os.path.join(path, 'checksums.json')
  content = json.loads(_read(listed))
  changed = _read(os.path.join(path, name))
  content['files'][name] = {
    'size': len(changed),
    'crc32': f'{zlib.crc32(changed):08x}',
  }
  _write(listed, json.dumps(content).encode())


@pytest.mark.parametrize('name', ['arrays.npz', 'checksums.json'])
@pytest.mark.parametrize('kind', ['fifo', 'link'])
def test_files_that_are_not_regular_are_refused_at_once(
  directory, path, tmp_path, name, kind
):
  file = os.path.join(path, name)
  os.rename(file, tmp_path / 'outside')
  if kind == 'link':
    os.symlink(tmp_path / 'outside', file)
    _assert_refused(directory, path, 'symbolic link')
  else:
    os.mkfifo(file)
    _assert_refused(directory, path)


def test_what_it_says_to_do_helps(directory, path):
  os.truncate(os.path.join(path, 'arrays.npz'), 10)
  _assert_refused(
    directory, path, 'arrays.npz', 'resume from checkpoint 00000001'
  )
  shutil.rmtree(path)
  assert _load(directory).state['number'] == 1


def test_it_names_no_older_one_that_is_not_there(directory, path):
  older = os.path.join(directory, '00000001')
  os.truncate(os.path.join(older, 'arrays.npz'), 10)
  shutil.rmtree(path)
  with pytest.raises(checkpointing.CheckpointError) as error:
    _load(directory)
  for raised in (error.value, pickle.loads(pickle.dumps(error.value))):
    assert str(raised).endswith(
      'Restore it from a copy, or start afresh (fresh=True).'
    )
    assert raised.remedy == {'fresh': True}


@pytest.mark.parametrize('name', _FILES[:4])
def test_missing(directory, path, name):
  os.remove(os.path.join(path, name))
  _assert_refused(directory, path, name)


@pytest.mark.parametrize('name', ['arrays.npz', 'checksums.json'])
def test_truncated(directory, path, name):
  file = os.path.join(path, name)
  size = os.path.getsize(file)
  os.truncate(file, size - 1)
  expected = [] if name == 'checksums.json' else [name, str(size)]
  _assert_refused(directory, path, *expected)


@pytest.mark.parametrize('name', [*_FILES[:3], _REPLAY_FILES[1]])
def test_any_flipped_byte(directory, path, name):
  file = os.path.join(path, name)
  content = _read(file)
  assert len(content) >= 30
  for index in range(0, len(content), 29):
    changed = bytearray(content)
    changed[index] ^= 1
    _write(file, changed)
    _assert_refused(directory, path)
  _write(file, content)
  assert _load(directory).state['number'] == 2


def test_a_file_too_many(directory, path):
  _write(os.path.join(path, 'replay', '1-other'), b'')
  _assert_refused(directory, path, '1-other', 'not listed')


def test_replay_need_not_be_read(directory, path):
  """Evaluations check only the presence of gigabytes of replay."""
  name = _REPLAY_FILES[1]
  file = os.path.join(path, name)
  content = bytearray(_read(file))
  content[7] ^= 0xFF
  _write(file, content)
  assert _load(directory, check_replay=False).state['number'] == 2
  _assert_refused(directory, path, name, 'checksum')
  os.truncate(file, 10)
  _assert_refused(directory, path, name, check_replay=False)


@pytest.mark.parametrize(
  'content',
  [
    b'\xff\xfe',
    b'{"format": 2, "files": 3}',
    b'{"format": 2, "files": {}}',
  ],
)
def test_other_lists(directory, path, content):
  _write(os.path.join(path, 'checksums.json'), content)
  _assert_refused(directory, path)


def test_what_was_never_a_state(directory, path):
  """A changed file with a matching checksum still raises a named error."""
  _write(os.path.join(path, 'state.json'), b'{"number": 2')
  _rewrite_checksums(path, 'state.json')
  _assert_refused(directory, path)


def test_other_format(directory, path):
  file = os.path.join(path, 'checksums.json')
  content = json.loads(_read(file))
  content['format'] += 1
  _write(file, json.dumps(content).encode())
  with pytest.raises(
    checkpointing.CheckpointError, match=r'format 4.* reads formats 2 and 3'
  ):
    _load(directory)


class Weapon:
  """An object that does harm when it is unpickled."""

  fired = False

  def __reduce__(self):
    return setattr, (Weapon, 'fired', True)


def test_pickles_are_not_loaded(directory, path):
  """Even with matching checksums."""
  armed = np.array([Weapon()], dtype=object)
  file = os.path.join(path, 'arrays.npz')
  np.savez(file, w=armed)
  _rewrite_checksums(path, 'arrays.npz')
  _assert_refused(directory, path, 'allow_pickle=False')
  # A bare pickle instead of an archive of arrays.
  _write(file, pickle.dumps(Weapon()))
  _rewrite_checksums(path, 'arrays.npz')
  _assert_refused(directory, path)
  assert not Weapon.fired
  np.load(io.BytesIO(_saved(armed)), allow_pickle=True)
  assert Weapon.fired  # It would have.


def _saved(array):
  file = io.BytesIO()
  np.save(file, array, allow_pickle=True)
  return file.getvalue()


def test_pickles_are_not_saved(directory):
  with pytest.raises(ValueError, match='Object arrays cannot be saved'):
    checkpointing.Checkpointer(directory).save(
      {'w': np.array([None])}, {'number': 1}
    )
  assert os.listdir(directory) == []
