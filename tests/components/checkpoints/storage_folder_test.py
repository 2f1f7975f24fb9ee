"""Tests of folders at paths and behind URLs: both satisfy one contract."""

import os
import sys

import pytest

from repertory.components import checkpoints
from repertory.components.checkpoints import storage_folder
from repertory.components.config.settings import SettingError


def _read(folder, name):
  return b''.join(folder.read(name))


class TestStorageFolder:
  @pytest.fixture(name='folder', params=['', 'memory://'])
  def _folder(self, request, tmp_path):
    folder = storage_folder.StorageFolder(f'{request.param}{tmp_path}/folder')
    yield folder
    folder.remove('')

  def test_long_files_are_read_in_chunks(self, folder):
    content = os.urandom(storage_folder.CHUNK_BYTES + 3)
    folder.write('a/b/c', [content[:5], content[5:]])
    chunks = list(folder.read('a/b/c'))
    assert [len(chunk) for chunk in chunks] == [storage_folder.CHUNK_BYTES, 3]
    assert b''.join(chunks) == content

  def test_entries_are_listed_and_removed(self, folder):
    assert folder.names('f') == []
    for name in ('f/a', 'f/b/c', 'f/b/d/e', 'g'):
      folder.write(name, [b'x'])
    assert folder.names('f') == ['a', 'b']
    assert folder.names('') == ['f', 'g']
    folder.remove('f')
    assert folder.names('') == ['g']
    folder.remove('g')
    folder.remove('missing')
    assert folder.names('') == []

  def test_missing_files_raise(self, folder):
    with pytest.raises(FileNotFoundError):
      _read(folder, 'f')

  def test_publish_replaces(self, folder):
    folder.publish('f/a', b'first')
    folder.publish('f/a', b'second')
    assert _read(folder, 'f/a') == b'second'
    assert folder.names('f') == ['a']

  def test_publish_leaves_nothing_if_it_fails(self, folder, monkeypatch):
    def fail(*arguments):
      raise OSError('no room')

    folder.publish('a', b'first')
    monkeypatch.setattr(folder._system, 'mv', fail)
    with pytest.raises(OSError, match='no room'):
      folder.publish('a', b'second')
    assert _read(folder, 'a') == b'first'
    assert folder.names('') == ['a']

  def test_folders_move(self, folder):
    folder.write('f/a/b', [b'x'])
    folder.move('f', 'g/h')
    assert folder.names('') == ['g']
    assert _read(folder, 'g/h/a/b') == b'x'


def test_errors_of_packages_are_os_errors(monkeypatch):
  folder = storage_folder.StorageFolder('memory://a')

  def fail(*arguments, **settings):
    raise RuntimeError('no network')

  for name in ('ls', 'open', 'mv', 'rm'):
    monkeypatch.setattr(folder._system, name, fail)
  for call in (
    lambda: folder.names('b'),
    lambda: _read(folder, 'b'),
    lambda: folder.write('b', [b'x']),
    lambda: folder.publish('b', b'x'),
    lambda: folder.move('b', 'c'),
    lambda: folder.remove('b'),
  ):
    with pytest.raises(OSError, match=r'/a/b.* cannot be .*no network'):
      call()


def test_short_writes_are_noticed(monkeypatch):
  folder = storage_folder.StorageFolder('memory://a')
  monkeypatch.setattr(folder._system, 'size', lambda path: 0)
  with pytest.raises(OSError, match='should have 1 bytes, has 0'):
    folder.write('b', [b'x'])


class TestOpenStorage:
  @pytest.mark.parametrize(
    ('url', 'message'),
    [
      ('s3://bucket/run', 's3fs'),
      ('nonsense://x', 'Protocol not known: nonsense'),
    ],
  )
  def test_unsupported_urls_are_named(self, url, message, monkeypatch):
    # As if it were not installed.
    monkeypatch.setitem(sys.modules, 's3fs', None)
    with pytest.raises(SettingError, match=message) as caught:
      checkpoints.Storage(url, 'runs/a')
    assert caught.value.setting == 'storage'
    assert url in str(caught.value)

  def test_passwords_are_not_shown(self):
    with pytest.raises(SettingError, match=r'://\*\*\*@host/a') as caught:
      checkpoints.Storage('nonsense://me:secret@host/a', 'runs/a')
    assert 'secret' not in str(caught.value)

  @pytest.mark.parametrize(
    'given', ['run', 'link/store', 'file://{}/run/store']
  )
  def test_it_is_apart_from_the_directory(self, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'link').symlink_to('run')
    with pytest.raises(SettingError, match=r'apart .*directory or inside'):
      checkpoints.Storage(given.format(tmp_path), 'run')
