"""Tests of folders at paths and behind URLs: both satisfy one contract."""

import sys

import pytest

from repertory.components import checkpoints
from repertory.components.checkpoints import storage
from repertory.components.config.settings import SettingError


class TestStorageFolder:
  @pytest.fixture(name='folder', params=['', 'memory://'])
  def _folder(self, request, tmp_path):
    folder = storage.StorageFolder(f'{request.param}{tmp_path}/folder')
    yield folder
    folder.remove('')

  def test_entries_are_listed_and_removed(self, folder):
    assert folder.names('f') == []
    for name in ('f/a', 'f/b/c', 'f/b/d/e', 'g'):
      folder.publish(name, b'x')
    assert folder.names('f') == ['a', 'b']
    assert folder.names('') == ['f', 'g']
    folder.remove('f')
    assert folder.names('') == ['g']
    folder.remove('g')
    folder.remove('missing')
    assert folder.names('') == []

  def test_missing_files_raise(self, folder, tmp_path):
    with pytest.raises(FileNotFoundError):
      folder.read('f')
    with pytest.raises(FileNotFoundError):
      folder.download('f', str(tmp_path / 'here'))

  def test_publish_replaces(self, folder):
    folder.publish('f/a', b'first')
    folder.publish('f/a', b'second')
    assert folder.read('f/a') == b'second'
    assert folder.names('f') == ['a']

  def test_publish_leaves_nothing_if_it_fails(self, folder, monkeypatch):
    def fail(*arguments):
      raise OSError('no room')

    folder.publish('a', b'first')
    monkeypatch.setattr(folder._system, 'mv', fail)
    with pytest.raises(OSError, match='no room'):
      folder.publish('a', b'second')
    assert folder.read('a') == b'first'
    assert folder.names('') == ['a']

  def test_folders_move(self, folder, tmp_path):
    (tmp_path / 'here').write_bytes(b'x')
    folder.upload(str(tmp_path / 'here'), 'f/a/b')
    folder.sync('f')
    folder.move('f', 'g/h')
    assert folder.names('') == ['g']
    folder.download('g/h/a/b', str(tmp_path / 'there'))
    assert (tmp_path / 'there').read_bytes() == b'x'


def test_short_uploads_are_noticed(tmp_path, monkeypatch):
  folder = storage.StorageFolder('memory://a')
  monkeypatch.setattr(folder._system, 'size', lambda path: 0)
  (tmp_path / 'b').write_bytes(b'x')
  with pytest.raises(OSError, match='should have 1 bytes, has 0'):
    folder.upload(str(tmp_path / 'b'), 'b')


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
