"""Tests of storage backends: all satisfy one contract."""

import os
import sys

import pytest

from repertory.components import checkpoints
from repertory.components.checkpoints import backends, fsspec_backend
from repertory.components.config.settings import SettingError
from support.launch import storage_fixture


@pytest.fixture(name='place', params=['path', 'file', 'memory'])
def _place(request, tmp_path):
  place = storage_fixture.make_place(request.param, tmp_path / 'place')
  yield place
  place.remove('')


def _forget(count):
  """Ignores a count."""


class TestPlaces:
  def test_what_is_written_is_read(self, place):
    place.write('a/b/c', [b'one ', b'two'])
    assert b''.join(place.read('a/b/c')) == b'one two'
    assert place.size('a/b/c') == 7

  def test_long_files_come_in_pieces(self, place):
    content = os.urandom(backends.CHUNK_BYTES + 3)
    place.write('a', [content])
    chunks = list(place.read('a'))
    assert [len(chunk) for chunk in chunks] == [backends.CHUNK_BYTES, 3]
    assert b''.join(chunks) == content

  def test_names_are_listed(self, place):
    for name in ('f/a', 'f/b/c', 'f/b/d/e', 'g'):
      place.write(name, [b'x'])
    assert sorted(place.names('f')) == ['a', 'b']
    assert sorted(place.names('')) == ['f', 'g']
    assert place.files('f') == ['a', 'b/c', 'b/d/e']

  def test_others_are_seen(self, place, tmp_path, request):
    kind = request.node.callspec.params['place']
    other = storage_fixture.make_place(kind, tmp_path / 'place')
    assert place.names('f') == []
    other.write('f/a', [b'x'])
    assert place.names('f') == ['a']

  def test_what_is_missing(self, place):
    assert place.names('f') == []
    place.remove('f')
    with pytest.raises(FileNotFoundError):
      list(place.read('f'))
    with pytest.raises(FileNotFoundError):
      place.size('f')

  def test_publish_replaces(self, place):
    place.publish('f/a', b'first')
    place.publish('f/a', b'second')
    assert b''.join(place.read('f/a')) == b'second'
    assert place.names('f') == ['a']

  def test_copies_are_apart(self, place):
    place.write('f/a', [b'x'])
    place.copy('f/a', 'g/h/a', _forget)
    place.remove('f')
    assert b''.join(place.read('g/h/a')) == b'x'

  def test_folders_and_files_are_removed(self, place):
    for name in ('f/a', 'f/b/c', 'g'):
      place.write(name, [b'x'])
    place.remove('f')
    assert place.names('') == ['g']
    place.remove('g')
    assert place.names('') == []

  def test_a_file_in_the_way_is_an_os_error(self, place):
    place.write('f', [b'x'])
    with pytest.raises(OSError, match='f'):
      place.write('f/a', [b'x'])


class TestLocalPlace:
  def test_publish_leaves_nothing_if_it_fails(self, tmp_path, monkeypatch):
    def fail(*arguments):
      raise OSError('no room')

    place = backends.LocalBackend(str(tmp_path))
    place.publish('a', b'first')
    monkeypatch.setattr(os, 'replace', fail)
    with pytest.raises(OSError, match='no room'):
      place.publish('a', b'second')
    assert (tmp_path / 'a').read_bytes() == b'first'
    assert os.listdir(tmp_path) == ['a']

  def test_copies_where_there_are_no_links(self, tmp_path, monkeypatch):
    def refuse(*arguments):
      raise PermissionError('no links')

    monkeypatch.setattr(os, 'link', refuse)
    place = backends.LocalBackend(str(tmp_path))
    place.write('a', [b'x'])
    place.copy('a', 'b', _forget)
    assert (tmp_path / 'b').read_bytes() == b'x'

  def test_a_copy_overwrites_nothing(self, tmp_path):
    """Both may be links to the same bytes."""
    place = backends.LocalBackend(str(tmp_path))
    place.write('a', [b'x'])
    place.copy('a', 'b', _forget)
    with pytest.raises(FileExistsError):
      place.copy('a', 'b', _forget)
    assert (tmp_path / 'a').read_bytes() == b'x'


class TestUrls:
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
      checkpoints.open_storage(url, 'runs/a')
    assert caught.value.setting == 'storage'
    assert url in str(caught.value)

  def test_without_the_package(self, monkeypatch):
    monkeypatch.setitem(sys.modules, 'fsspec', None)
    monkeypatch.setitem(sys.modules, 'fsspec.core', None)
    with pytest.raises(SettingError, match=r"pip install 'repertory\[storage"):
      checkpoints.open_storage('memory://a', 'runs/a')
    assert checkpoints.open_storage('a/path', 'runs/a') is not None

  def test_errors_of_packages_are_os_errors(self, monkeypatch):
    place = fsspec_backend.FsspecBackend('memory://a')

    def fail(*arguments, **settings):
      raise RuntimeError('no network')

    for name in ('ls', 'open', 'pipe_file', 'cp_file', 'rm', 'info', 'find'):
      monkeypatch.setattr(place._system, name, fail)
    for call in (
      lambda: place.names('b'),
      lambda: place.files('b'),
      lambda: place.size('b'),
      lambda: list(place.read('b')),
      lambda: place.write('b', [b'x']),
      lambda: place.publish('b', b'x'),
      lambda: place.copy('b', 'c', _forget),
      lambda: place.remove('b'),
    ):
      with pytest.raises(OSError, match=r'/a/b cannot be .*no network'):
        call()

  def test_copies_by_itself_where_that_is_not_offered(self, monkeypatch):
    def refuse(*arguments, **settings):
      raise NotImplementedError

    place = fsspec_backend.FsspecBackend('memory://copies')
    place.write('a', [b'x'])
    monkeypatch.setattr(place._system, 'cp_file', refuse)
    place.copy('a', 'b', _forget)
    assert b''.join(place.read('b')) == b'x'
    place.remove('')

  def test_passwords_are_not_shown(self):
    assert (
      fsspec_backend.without_secrets('ftp://me:secret@host/a')
      == 'ftp://***@host/a'
    )
    with pytest.raises(SettingError) as caught:
      checkpoints.open_storage('nonsense://me:secret@host/a', 'runs/a')
    assert 'secret' not in str(caught.value)

  def test_each_has_a_connection_of_its_own(self):
    """Not all of them can be shared by threads."""
    first, second = (
      fsspec_backend.FsspecBackend('memory://a') for _ in range(2)
    )
    assert first._system is not second._system


@pytest.mark.parametrize(
  ('given', 'directory', 'message'),
  [
    ('run', 'run', 'that directory or inside'),
    ('run/store', 'run', 'that directory or inside'),
    ('run/../run/store', 'run', 'that directory or inside'),
    ('link/store', 'run', 'that directory or inside'),
    ('file://{}/run/store', 'run', 'that directory or inside'),
    ('store', 'store/checkpoints', 'checkpoints of its own'),
    ('store', 'store/best/run', 'checkpoints of its own'),
  ],
)
def test_storage_is_apart_from_the_directory(
  given, directory, message, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'link').symlink_to('run')
  with pytest.raises(SettingError, match=f'apart .*{message}'):
    checkpoints.open_storage(given.format(tmp_path), directory)


@pytest.mark.parametrize('given', ['store', '.', 'run2', 'memory://run'])
def test_storage_may_be_beside_the_directory_or_around_it(
  given, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  assert checkpoints.open_storage(given, 'run') is not None


def test_no_storage():
  assert checkpoints.open_storage(None, 'run') is None
