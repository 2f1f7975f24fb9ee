"""Tests a wheel in an environment that has nothing else."""

import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest

import stacks

_ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.chaos


def _run(*command, cwd):
  done = subprocess.run(
    list(map(str, command)),
    cwd=cwd,
    timeout=1500,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )
  assert done.returncode == 0, done.stdout[-4000:]
  return done.stdout


def test_wheel_installs_by_itself_and_trains(tmp_path):
  # A copy, for to build leaves things in the checkout, and takes those there.
  found = _run(
    *('git', 'ls-files', '--cached', '--others', '--exclude-standard'),
    cwd=_ROOT,
  )
  for name in found.splitlines():
    copy = tmp_path / 'source' / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    if (_ROOT / name).is_file():  # It is not if deleted since the commit.
      shutil.copy(_ROOT / name, copy)
  _run(
    *(sys.executable, '-m', 'pip', 'wheel', '--no-deps'),
    *('--no-build-isolation', '--wheel-dir', tmp_path, tmp_path / 'source'),
    cwd=tmp_path,
  )
  (wheel,) = tmp_path.glob('repertory-*.whl')
  _run(sys.executable, '-m', 'venv', 'empty', cwd=tmp_path)
  python = tmp_path / 'empty' / 'bin' / 'python'
  constraints = _ROOT / stacks.CONSTRAINTS[sysconfig.get_python_version()]
  _run(
    *(python, '-m', 'pip', 'install', '--constraint', constraints),
    f'{wheel}[cpu]',
    cwd=tmp_path,
  )
  _run(python, '-m', 'pip', 'check', cwd=tmp_path)
  printed = _run(
    *(python.parent / 'repertory', 'train', '--agent=dqn', '--env=catch'),
    *('--steps=2000', '--directory=run'),
    cwd=tmp_path,
  )
  assert 'return' in printed
  program = 'import repertory; print(*repertory.__path__)'
  place = _run(python, '-c', program, cwd=tmp_path)
  assert str(tmp_path / 'empty') in place
