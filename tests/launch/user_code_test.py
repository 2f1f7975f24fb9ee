"""Tests of the transfer of the user's modules to other hosts."""

import inspect
import os
import pathlib
import sys
import zipfile

import pytest

from repertory.components.config import import_paths, settings

pytest.importorskip('ray')

from repertory.launch.launchers import ray_cluster


@pytest.fixture(name='folder')
def _folder(tmp_path, monkeypatch):
  for name in (
    'train.py', 'mine/logs/writer.py', 'mine/__init__.py', 'data/map.txt',
    'logs/learner.jsonl', 'runs/dqn/x', 'venv/bin/python', '.git/config',
    '.env', 'mine/.hidden', '__pycache__/train.pyc', 'checkpoints/1/x',
  ):  # fmt: skip
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
  monkeypatch.setattr(sys, 'path', [str(tmp_path), *sys.path])
  return tmp_path


def test_folder_of_the_script_is_copied(folder):
  packaging = pytest.importorskip('ray._private.runtime_env.packaging')
  environment = ray_cluster._runtime_environment()
  assert environment['working_dir'] == os.path.realpath(folder)
  archive = folder.parent / 'copied.zip'
  # Newer versions of Ray have an argument for it.
  parameters = inspect.signature(packaging._zip_files).parameters
  also = (
    {'include_gitignore': True} if 'include_gitignore' in parameters else {}
  )
  packaging._zip_files(
    pathlib.Path(environment['working_dir']), environment['excludes'],
    archive, include_parent_dir=False, **also,
  )  # fmt: skip
  copied = zipfile.ZipFile(archive).namelist()
  assert sorted(name for name in copied if not name.endswith('/')) == [
    'data/map.txt', 'mine/__init__.py', 'mine/logs/writer.py', 'train.py',
  ]  # fmt: skip


def test_installed_packages_are_not(monkeypatch):
  installed = [p for p in sys.path if p.startswith(sys.prefix)]
  monkeypatch.setattr(sys, 'path', installed)
  assert installed
  assert ray_cluster._runtime_environment() is None


def test_folder_of_a_module_that_was_given_by_name_is(
  folder, write_module, monkeypatch, tmp_path
):
  (tmp_path / 'current').mkdir()
  monkeypatch.chdir(tmp_path / 'current')
  write_module('current.own_code', 'thing = 1')
  assert ray_cluster.code_folder() == os.path.realpath(folder)
  assert import_paths.find('own_code:thing') == 1
  assert ray_cluster.code_folder() == os.path.realpath(tmp_path / 'current')


def test_home_directory_is_refused(folder, monkeypatch):
  monkeypatch.setenv('HOME', str(folder))
  with pytest.raises(settings.SettingError, match='in its own folder'):
    ray_cluster._runtime_environment()
