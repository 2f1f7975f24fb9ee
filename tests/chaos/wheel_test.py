"""Tests of the source distribution, and of its wheel in empty environments."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

import repertory
from support.system import program, run_notebook, stacks

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_RELEASE = f'repertory-{repertory.__version__}'
_FIND_SECONDS = 900

pytestmark = pytest.mark.chaos


def _files(*paths: str) -> set[str]:
  """Returns the names of the checkout's files, all or those in folders."""
  found = program.run(
    *('git', 'ls-files', '--cached', '--others', '--exclude-standard'),
    *paths,
    cwd=_ROOT,
  ).splitlines()
  # A file is not there if deleted since the commit.
  return {name for name in found if (_ROOT / name).is_file()}


@pytest.fixture(scope='module', name='built')
def _built(tmp_path_factory):
  """A folder with a source distribution, and the wheel that is built of it."""
  folder = tmp_path_factory.mktemp('built')
  # A copy, for to build leaves things in the checkout, and takes those there.
  for name in _files():
    copy = folder / 'source' / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(_ROOT / name, copy)
  build = 'from setuptools import build_meta; build_meta.build_sdist("..")'
  program.run(sys.executable, '-c', build, cwd=folder / 'source')
  program.run(
    *(sys.executable, '-m', 'pip', 'wheel', '--no-deps'),
    *('--no-build-isolation', folder / f'{_RELEASE}.tar.gz'),
    cwd=folder,
  )
  return folder


def test_it_has_all_modules_the_license_and_no_tests(built):
  package = _files('agents', 'components', 'environments', 'launch')
  package |= {'__init__.py', 'py.typed'}
  assert 'launch/results/report.html' in package
  with zipfile.ZipFile(built / f'{_RELEASE}-py3-none-any.whl') as wheel:
    in_wheel = set(wheel.namelist())
  about = {name for name in in_wheel if name.startswith(f'{_RELEASE}.dist')}
  assert in_wheel - about == {f'repertory/{name}' for name in package}
  assert f'{_RELEASE}.dist-info/licenses/LICENSE' in about
  with tarfile.open(built / f'{_RELEASE}.tar.gz') as source:
    in_source = {
      one.name.partition('/')[2]
      for one in source
      if one.isfile() and '.egg-info/' not in one.name
    }
  assert in_source == package | {
    'LICENSE', 'PKG-INFO', 'README.md', 'pyproject.toml', 'setup.cfg'
  }  # fmt: skip


def _find_python(version: str) -> str:
  """Returns a Python of a version, or skips the test if none can be found."""
  found = subprocess.run(
    [_ROOT / '.ci' / 'set_up', '--find-python'],
    env={**os.environ, 'PYTHON': version},
    timeout=_FIND_SECONDS,
    capture_output=True,
    text=True,
  )
  if found.returncode:
    pytest.skip(found.stderr)
  return found.stdout.strip()


@pytest.fixture(name='empty', params=stacks.CONSTRAINTS)
def _empty(request, tmp_path):
  """A Python version, and the interpreter of an environment with nothing."""
  folder = tmp_path / 'environment'
  program.run(_find_python(request.param), '-m', 'venv', folder, cwd=tmp_path)
  yield request.param, folder / 'bin' / 'python'
  shutil.rmtree(folder)  # Gigabytes, which pytest would keep.


def test_newest_packages_train_and_run_the_quickstart(empty, built, tmp_path):
  version, python = empty
  wheel = built / f'{_RELEASE}-py3-none-any.whl'

  def install(extras):
    program.run(
      python, '-m', 'pip', 'install', f'{wheel}[{extras}]', cwd=tmp_path
    )
    program.run(python, '-m', 'pip', 'check', cwd=tmp_path)

  def repertory_prints(*arguments):
    return program.run(python.parent / 'repertory', *arguments, cwd=tmp_path)

  install('cpu')
  place = program.run(
    *(python, '-c', 'import repertory; print(*repertory.__path__)'),
    cwd=tmp_path,
  )
  assert str(tmp_path / 'environment') in place
  printed = repertory_prints('--version')
  assert printed.startswith(
    f'repertory {repertory.__version__} with Python {version}.'
  )
  printed = repertory_prints(
    *('train', '--agent=dqn', '--env=catch', '--steps=2000'),
    '--directory=run',
  )
  assert 'Mean return of the last evaluation' in printed
  install('cpu,plots')  # The notebook draws.
  notebook = _ROOT / 'examples' / 'quickstart.ipynb'
  for path in (notebook, run_notebook.__file__):
    shutil.copy(path, tmp_path)
  program.run(
    *(python, 'run_notebook.py', notebook.name), cwd=tmp_path, MPLBACKEND='agg'
  )
  assert (tmp_path / 'runs' / 'quickstart' / 'checkpoints').exists()
