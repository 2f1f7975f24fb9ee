"""Tests of opening files in folders with untrusted contents."""

import os
import re

import pytest

from repertory.components.config import regular_files


@pytest.fixture
def folder(tmp_path):
  """A directory with a file in it, and a secret next to it."""
  (tmp_path / 'secret').write_bytes(b'secret')
  (tmp_path / 'run/logs').mkdir(parents=True)
  (tmp_path / 'run/logs/a.csv').write_bytes(b'a')
  return tmp_path


def _read(directory, name):
  with regular_files.open_inside(str(directory), name) as file:
    return file.read()


def test_regular_files_are_read(folder):
  assert _read(folder / 'run', 'logs/a.csv') == b'a'
  with regular_files.open_file(str(folder / 'secret')) as file:
    assert file.read() == b'secret'
  assert regular_files.list_inside(str(folder / 'run'), 'logs') == ['a.csv']


def test_the_directory_itself_may_be_a_link(folder):
  (folder / 'link').symlink_to('run')
  (folder / 'deep').symlink_to('.')
  for directory in (folder / 'link', folder / 'deep/link', f'{folder}/link/'):
    assert _read(directory, 'logs/a.csv') == b'a'
    assert regular_files.list_inside(str(directory), 'logs') == ['a.csv']


@pytest.mark.parametrize(
  'name', ['../secret', 'logs/../../secret', '{}/secret']
)
def test_paths_that_lead_out_are_refused(folder, name):
  with pytest.raises(OSError, match='is not inside'):
    _read(folder / 'run', name.format(folder))


@pytest.mark.parametrize(
  ('link', 'target', 'name'),
  [
    ('run/logs/b.csv', '../../secret', 'logs/b.csv'),
    # Also those that stay inside.
    ('run/best', 'logs', 'best/a.csv'),
  ],
)
def test_links_inside_are_refused(folder, link, target, name):
  (folder / link).symlink_to(target)
  with pytest.raises(OSError, match='symbolic link'):
    _read(folder / 'run', name)
  inside = os.path.dirname(name)
  if inside == 'logs':
    assert regular_files.list_inside(str(folder / 'run'), inside) == ['a.csv']
  else:
    with pytest.raises(OSError, match='symbolic link'):
      regular_files.list_inside(str(folder / 'run'), inside)


def test_other_files_are_refused_at_once(folder):
  os.mkfifo(folder / 'run/fifo')
  (folder / 'fifo').symlink_to('run/fifo')
  message = 'it is not a regular file'
  with pytest.raises(OSError, match=message):
    _read(folder / 'run', 'fifo')
  for path in (str(folder / 'fifo'), os.devnull):
    with pytest.raises(OSError, match=f'{message}: {re.escape(repr(path))}'):
      regular_files.open_file(path)
  with pytest.raises(IsADirectoryError):
    _read(folder / 'run', 'logs')
  with pytest.raises(FileNotFoundError):
    _read(folder / 'run', 'nothing')
  # A file in place of a folder.
  with pytest.raises(NotADirectoryError):
    _read(folder / 'run', 'logs/a.csv/b')
  assert not regular_files.list_inside(str(folder / 'run'), '.')
