"""Tests of the cache of compiled programs."""

import os
import subprocess
import sys

import pytest

from repertory.components.runtime import versions, xla_cache

pytestmark = pytest.mark.skipif(
  not versions.has_xla_cache(), reason='TensorFlow has no such cache.'
)

# Prints a result with all its digits, and the number of programs read.
_CODE = """
import os
import tensorflow as tf
from repertory.components.runtime import compilation
x = tf.reshape(tf.linspace(-1.0, 1.0, 4096), [64, 64])
function = compilation.CompiledFunction(
  lambda x: tf.reduce_sum(tf.tanh(x @ x)), [tf.TensorSpec([64, 64])], True
)
print(function(x)[0].numpy().item().hex())
"""


def _run(folder, **variables):
  """Returns the program's output and its log."""
  ended = subprocess.run(
    [sys.executable, '-c', _CODE],
    env={**os.environ, xla_cache.VARIABLE: str(folder), **variables},
    capture_output=True,
    check=True,
    text=True,
    timeout=300,
  )
  return ended.stdout, ended.stderr


def _files(folder):
  return [path for path in folder.rglob('*') if path.is_file()]


def test_programs_are_kept(tmp_path):
  tmp_path = tmp_path / 'with a space'
  first, _ = _run(tmp_path)
  (file,) = _files(tmp_path)
  written = file.stat()
  second, log = _run(tmp_path)
  assert first == second
  # TensorFlow logs that it reads one.
  assert 'AOT result' in log or 'parsing text-format' in log
  assert file.stat().st_mtime_ns == written.st_mtime_ns
  # Other flags of the compiler are for other programs.
  _run(tmp_path, XLA_FLAGS='--xla_llvm_disable_expensive_passes=false')
  assert len(_files(tmp_path)) == 2


def test_a_damaged_program_is_compiled_again(tmp_path):
  first, _ = _run(tmp_path)
  (file,) = _files(tmp_path)
  whole = file.read_bytes()
  # As after a crash of the system.
  for damaged in (b'', whole[: len(whole) // 2], bytes(len(whole))):
    file.write_bytes(damaged)
    assert _run(tmp_path)[0] == first
    assert len(file.read_bytes()) == len(whole)


@pytest.mark.parametrize('is_open', [False, True])
def test_a_folder_of_others_is_not_used(tmp_path, is_open):
  _run(tmp_path)
  (file,) = _files(tmp_path)
  file.unlink()
  if is_open:
    file.parent.chmod(0o777)
  _run(tmp_path)
  assert bool(_files(tmp_path)) != is_open


def test_it_can_be_switched_off(tmp_path):
  _run('', HOME=str(tmp_path), XDG_CACHE_HOME='')
  assert not (tmp_path / '.cache/repertory').exists()


def test_the_oldest_programs_are_deleted(tmp_path, monkeypatch):
  monkeypatch.setattr(xla_cache, '_MAX_BYTES', 100)
  for age in range(11):
    path = tmp_path / str(age)
    path.write_bytes(b'0123456789')
    os.utime(path, (1e9 - age, 1e9 - age))
  xla_cache._prepare(tmp_path)
  assert {path.name for path in tmp_path.iterdir()} == set('01234')
