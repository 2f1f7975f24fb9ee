"""Tests of killed runs with a storage, from which another host resumes.

`make test-chaos` runs these.
"""

import random
import shutil
import time

import pytest

from repertory.launch.experiments import directories
from support.launch import log_files, storage_fixture
from support.system import program

pytestmark = pytest.mark.chaos

_NUM_KILLS = 4


def _unfinished(folder):
  names = {path.name for path in (folder / 'checkpoints').iterdir()}
  return [n for n in names if '.' not in n and f'{n}.json' not in names]


def _progress(manifest):
  return manifest.learner_steps, manifest.steps


def test_hosts_that_die_one_after_the_other(tmp_path):
  """Each has its own directory, which is lost."""
  seed = random.randrange(10**6)
  print('seed', seed)  # Shown if it fails.
  randomness = random.Random(seed)
  stored = tmp_path / 'S'

  def start(host, max_steps):
    return program.training(
      tmp_path / host,
      max_steps,
      f'--storage={stored}',
      *('--topology=distributed', '--lp_launch_type=local_mp'),
      '--num_actors=2',
      cwd=tmp_path,
    )

  progress = (0, 0)
  for kill in range(_NUM_KILLS):
    running = start(f'host{kill}', 10**6)
    try:

      def has_got_on(before=progress, running=running):
        assert running.is_running(), running.output()
        if not stored.exists():
          return False
        try:
          newest = storage_fixture.open_store(stored).newest()
        except FileNotFoundError:  # It made way for a newer one.
          return False
        return newest is not None and _progress(newest) > before

      program.wait_until(has_got_on, 300, 'a newer checkpoint in the storage')
      time.sleep(randomness.uniform(0, 1))
    finally:
      program.kill_all_of(running)
    newest = storage_fixture.open_store(stored).newest()
    assert _progress(newest) > progress
    progress = _progress(newest)
    shutil.rmtree(tmp_path / f'host{kill}')
  # The last host resumes at once: the others were on this machine.
  max_steps = progress[1] + 500
  ended = start('last', max_steps).wait(300)
  assert ended.code == 0, ended.output
  counts = directories.load_checkpoint(str(tmp_path / 'last')).state['counts']
  assert counts['steps'] >= max_steps
  assert counts['runs'] == _NUM_KILLS + 1
  (row,) = [
    row
    for row in log_files.nodes(tmp_path / 'last')
    if row['node'] == 'storage'
  ]
  assert f'of {progress[1]} steps and {progress[0]} updates' in row['message']
  assert not _unfinished(stored)
  assert not (stored / 'owner.json').exists()
  manifest = storage_fixture.open_store(stored).newest()
  assert _progress(manifest) == (counts['learner_steps'], counts['steps'])
