"""Tests that a disk error leaves the last good checkpoint intact."""

import errno
import json
import os

import numpy as np
import pytest

from repertory.components.checkpoints import checkpointing
from support.system import real_disk_errors

_SOURCE = """
import json, os, sys
import numpy as np
from repertory.components.checkpoints import checkpointing

directory = os.path.join(sys.argv[1], 'checkpoints')
checkpointer = checkpointing.Checkpointer(directory)

def save(number, size):
  try:
    checkpointer.save({'w': np.full(size, number, np.uint8)}, {'n': number})
    error = None
  except OSError as raised:
    error = raised.errno
  newest = checkpointer.load()
  assert np.all(newest.arrays['w'] == newest.state['n'])
  print(json.dumps([error, newest.state['n'], sorted(os.listdir(directory))]))
"""
_FIRST, _SECOND = '00000001', '00000002'


def _lines(output):
  return [json.loads(line) for line in output.splitlines()]


def test_full_disk(tmp_path):
  if not real_disk_errors.can_mount(tmp_path):
    pytest.skip('may not mount a small disk here')
  output = real_disk_errors.run_on_small_disk(
    _SOURCE + 'for n, size in enumerate((4e5, 9e5, 4e5)): save(n, int(size))',
    tmp_path,
    '1m',
  )
  # Partial files were removed, or there would be no room for the third.
  assert _lines(output) == [
    [None, 0, [_FIRST]],
    [errno.ENOSPC, 0, [_FIRST]],
    [None, 2, [_FIRST, _SECOND]],
  ]


@pytest.mark.parametrize('limit', [0, 5_000])
def test_file_that_may_not_grow(tmp_path, limit):
  """No partial files are left, wherever it stops."""
  directory = str(tmp_path / 'checkpoints')
  checkpointer = checkpointing.Checkpointer(directory)
  checkpointer.save({'w': np.zeros(9)}, {'n': 0})
  with (
    real_disk_errors.file_size_limit(limit),
    pytest.raises(OSError) as error,
  ):
    checkpointer.save({'w': np.zeros(9_000)}, {'n': 1})
  assert error.value.errno == errno.EFBIG
  assert os.listdir(directory) == [_FIRST]
  assert checkpointer.load().state['n'] == 0
  checkpointer.save({'w': np.zeros(9_000)}, {'n': 2})
  assert checkpointer.load().state['n'] == 2


def test_folder_that_is_a_file(tmp_path):
  directory = tmp_path / 'checkpoints'
  directory.write_text('')
  with pytest.raises(OSError, match='checkpoints'):
    checkpointing.Checkpointer(str(directory)).save({}, {})
  assert directory.read_text() == ''
  assert checkpointing.Checkpointer(str(directory)).load() is None


def test_state_that_cannot_be_written_leaves_nothing(tmp_path):
  directory = str(tmp_path / 'checkpoints')
  with pytest.raises(TypeError, match='JSON'):
    checkpointing.Checkpointer(directory).save({}, {'state': object()})
  assert os.listdir(directory) == []
