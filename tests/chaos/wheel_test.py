"""Tests of a wheel in an otherwise empty environment."""

import pathlib
import shutil
import sys
import sysconfig

import pytest

from support.system import program, stacks

_ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.chaos


def test_wheel_installs_by_itself_and_trains(tmp_path):
  # A copy, for to build leaves things in the checkout, and takes those there.
  found = program.run(
    *('git', 'ls-files', '--cached', '--others', '--exclude-standard'),
    cwd=_ROOT,
  )
  for name in found.splitlines():
    copy = tmp_path / 'source' / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    if (_ROOT / name).is_file():  # It is not if deleted since the commit.
      shutil.copy(_ROOT / name, copy)
  program.run(
    *(sys.executable, '-m', 'pip', 'wheel', '--no-deps'),
    *('--no-build-isolation', '--wheel-dir', tmp_path, tmp_path / 'source'),
    cwd=tmp_path,
  )
  (wheel,) = tmp_path.glob('repertory-*.whl')
  program.run(sys.executable, '-m', 'venv', 'empty', cwd=tmp_path)
  python = tmp_path / 'empty' / 'bin' / 'python'
  constraints = _ROOT / stacks.CONSTRAINTS[sysconfig.get_python_version()]
  program.run(
    *(python, '-m', 'pip', 'install', '--constraint', constraints),
    f'{wheel}[cpu]',
    cwd=tmp_path,
  )
  program.run(python, '-m', 'pip', 'check', cwd=tmp_path)
  printed = program.run(
    *(python.parent / 'repertory', 'train', '--agent=dqn', '--env=catch'),
    *('--steps=2000', '--directory=run'),
    cwd=tmp_path,
  )
  assert 'return' in printed
  code = 'import repertory; print(*repertory.__path__)'
  place = program.run(python, '-c', code, cwd=tmp_path)
  assert str(tmp_path / 'empty') in place
