"""Tests of the rotation of output files."""

import os
import subprocess
import sys

import pytest

from repertory.launch.platform import printed
from support.system import program


@pytest.fixture(autouse=True)
def _small(monkeypatch):
  monkeypatch.setattr(printed, '_MAX_BYTES', 100)


@pytest.mark.parametrize('name', ['native.log', 'nodes/learner/0'])
def test_a_long_file_is_set_aside(tmp_path, name):
  path = tmp_path / name
  path.parent.mkdir(parents=True, exist_ok=True)
  older = path.with_name(path.name + '.previous')
  for text in ('a' * 101, 'b' * 102):
    path.write_text(text)
    printed.shorten(str(tmp_path))
    assert path.read_text() == ''
    assert older.read_text() == text
  path.write_text('c' * 100)
  printed.shorten(str(tmp_path))
  assert path.read_text() == 'c' * 100
  assert os.listdir(path.parent).count(older.name) == 1


def test_output_continues_at_the_start_of_the_file(tmp_path):
  path = tmp_path / 'nodes' / 'actor' / '3'
  path.parent.mkdir(parents=True)
  source = """
import sys
for line in sys.stdin:
  print(line, end='', flush=True)
  print('too', file=sys.stderr, flush=True)
"""
  with open(path, 'a') as file:
    printing = subprocess.Popen(
      [sys.executable, '-c', source],
      stdin=subprocess.PIPE,
      stdout=file,
      stderr=file,
      text=True,
    )
  with printing:
    printing.stdin.write('x' * 200 + '\n')
    printing.stdin.flush()
    program.wait_until(
      lambda: path.read_text().endswith('too\n'), 60, 'two lines'
    )
    printed.shorten(str(tmp_path))
    assert path.read_text() == ''
    printing.communicate('more\n', timeout=60)
  assert path.read_text() == 'more\ntoo\n'
  assert path.with_name('3.previous').read_text() == 'x' * 200 + '\ntoo\n'
