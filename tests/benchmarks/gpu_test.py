"""Tests of `benchmarks/gpu.py`, on parts of a CPU."""

import pathlib
import re
import subprocess
import sys

import pytest
import tensorflow as tf

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_TIMEOUT = 400


def _run(command, check=False):
  return subprocess.run(
    command,
    cwd=_ROOT,
    check=check,
    capture_output=True,
    text=True,
    timeout=_TIMEOUT,
  )


def _measure(*arguments):
  return _run([sys.executable, 'benchmarks/gpu.py', *arguments])


def _rows(text):
  """Returns the cells of the table's rows, without its header."""
  lines = re.findall(r'^\| (.*) \|$', text, re.MULTILINE)
  return [line.split(' | ') for line in lines][2:]


@pytest.mark.chaos
def test_smallest_cases_on_parts_of_a_cpu():
  ended = _measure(
    '--devices=CPU:0,CPU:1', '--smallest', '--turns=1', '--seconds=0.1',
    '--parts=acting,updates,central',
  )  # fmt: skip
  assert ended.returncode == 0, ended.stderr
  assert f'TensorFlow {tf.__version__}' in ended.stdout
  assert '| part | case | unit | CPU:0 | CPU:1 | ratio |' in ended.stdout
  rows = _rows(ended.stdout)
  assert [row[:3] for row in rows] == [
    ['acting', 'mlp, B=1', 'steps/s'],
    ['updates', 'dqn, vector, 32 items, XLA', 'updates/s'],
    ['updates', 'dqn, vector, 32 items, no XLA', 'updates/s'],
    ['central', 'mlp, 1 × 1', 'steps/s'],
  ]
  for row in rows:
    first, second = (float(cell.replace(',', '')) for cell in row[3:5])
    assert first > 0
    ratio = float(row[5].split(' ')[0])
    # Rates are printed to one decimal place, ratios to two.
    assert ratio == pytest.approx(second / first, rel=0.1, abs=0.01)


def test_wrong_arguments_are_refused():
  ended = _measure('--parts=acting,updating')
  assert ended.returncode == 1
  assert "got 'updating'" in ended.stdout + ended.stderr
