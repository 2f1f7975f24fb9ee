"""Tests of checkpoint writers that are killed at random times.

`make test-chaos` runs these.
"""

import os
import random
import subprocess
import sys
import time

import pytest

from repertory.launch.experiments import directories
from support.system import program

pytestmark = pytest.mark.chaos

_NUM_KILLS = 100
_NUM_PROGRAM_KILLS = 6

# Resumes from the newest checkpoint, with all checks, and writes further ones
# as fast as it can. Prints each once it is complete.
_WRITER = """
import os, shutil, sys
import numpy as np
from repertory.components.checkpoints import checkpointing

directory = sys.argv[1]
served = os.path.join(directory, '.replay')
checkpointer = checkpointing.Checkpointer(directory)
checkpoint = checkpointer.load()
number = 0
if checkpoint is not None:
  number = checkpoint.state['number']
  assert len(checkpoint.arrays) == 5
  for array in checkpoint.arrays.values():
    assert array.shape == (20_000,) and np.all(array == number)
  for name in ('items', 'chunks'):
    with open(os.path.join(checkpoint.replay_path, name), 'rb') as file:
      assert file.read() == number.to_bytes(8, 'big') * 10_000
checkpointer.remove_unfinished()
checkpointing.prepare_replay(checkpoint and checkpoint.replay_path, served)
print('resumed', number, flush=True)
while True:
  number += 1
  replay_path = os.path.join(served, f'1-{number}')
  os.makedirs(replay_path)
  for name in ('items', 'chunks'):
    with open(os.path.join(replay_path, name), 'wb') as file:
      file.write(number.to_bytes(8, 'big') * 10_000)
  arrays = {str(i): np.full(20_000, number, np.int64) for i in range(5)}
  checkpointer.save(arrays, {'number': number}, replay_path)
  print('wrote', number, flush=True)
  shutil.rmtree(replay_path)
"""


def _kill_a_writer(directory, seconds, output):
  """Runs a writer for a while; returns the checkpoints it resumed and wrote."""
  with open(output, 'w') as file:
    process = subprocess.Popen(
      [sys.executable, '-c', _WRITER, directory],
      stdin=subprocess.DEVNULL,
      stdout=file,
      stderr=subprocess.STDOUT,
    )

  def lines():
    # The last one may be torn.
    return [line.split() for line in output.read_text().split('\n')[:-1]]

  try:
    deadline = time.monotonic() + 60
    while not lines():
      assert time.monotonic() < deadline
      assert process.poll() is None, output.read_text()
      time.sleep(0.001)
    time.sleep(seconds)
    assert process.poll() is None, output.read_text()
  finally:
    process.kill()
    process.wait()
  (first, resumed), *wrote = lines()
  assert first == 'resumed', output.read_text()
  return int(resumed), [int(number) for _, number in wrote]


def test_a_writer_killed_at_random_moments(tmp_path):
  directory = str(tmp_path / 'checkpoints')
  seed = random.randrange(10**6)
  print('seed', seed)  # Shown if it fails.
  randomness = random.Random(seed)
  last, torn, wrote_any = 0, 0, 0
  for _ in range(_NUM_KILLS + 1):
    resumed, wrote = _kill_a_writer(
      directory, randomness.uniform(0, 0.15), tmp_path / 'output.txt'
    )
    # All printed checkpoints are complete; one more may have been written.
    assert last <= resumed <= last + 1
    assert wrote == list(range(resumed + 1, resumed + 1 + len(wrote)))
    last = wrote[-1] if wrote else resumed
    wrote_any += bool(wrote)
    names = os.listdir(directory)
    torn += any(name.startswith(('.writing', '.removing')) for name in names)
    assert len([name for name in names if name.isdigit()]) <= 3
  # The kills came in the middle of writing as well as between.
  assert torn > _NUM_KILLS / 10
  assert wrote_any > _NUM_KILLS / 10
  assert last > _NUM_KILLS / 2


def _newest(directory):
  """Reads the newest checkpoint with all checks; returns its counts."""
  checkpoint = directories.load_checkpoint(str(directory))
  if checkpoint is None:
    return {'steps': 0, 'learner_steps': 0, 'runs': 0}
  counts = checkpoint.state['counts']
  assert checkpoint.arrays['learner_steps'] == counts['learner_steps']
  assert checkpoint.replay_path is not None
  return counts


def test_a_program_killed_at_random_moments(tmp_path):
  seed = random.randrange(10**6)
  print('seed', seed)
  randomness = random.Random(seed)
  directory = tmp_path / 'run'

  def start(max_steps):
    return program.training(
      directory, max_steps, '--topology=single', cwd=tmp_path
    )

  counts = _newest(directory)
  for _ in range(_NUM_PROGRAM_KILLS):
    running, before = start(10**6), counts
    try:
      _wait_for_checkpoint(running, directory, _number(directory) + 1)
      time.sleep(randomness.uniform(0, 1))
    finally:
      program.kill_all_of(running)
    counts = _newest(directory)
    assert counts['steps'] >= before['steps']
    assert counts['learner_steps'] >= before['learner_steps']
    assert counts['runs'] == before['runs'] + 1
  # The last start runs to the end.
  max_steps = counts['steps'] + 500
  ended = start(max_steps).wait(300)
  assert ended.code == 0, ended.output
  assert _newest(directory)['steps'] >= max_steps
  assert _newest(directory)['runs'] == _NUM_PROGRAM_KILLS + 1


def _wait_for_checkpoint(running, directory, number):
  def is_there():
    assert running.is_running(), running.output()
    paths = (directory / 'checkpoints').glob('0*')
    return any(int(path.name) >= number for path in paths)

  program.wait_until(is_there, 300, f'checkpoint {number}')


def _number(directory):
  checkpoint = directories.load_checkpoint(str(directory))
  return int(os.path.basename(checkpoint.path)) if checkpoint else 0
