"""Tests of recordings that cannot be written, on a disk that is full."""

import json
import re

import pytest

from support.system import real_disk_errors

# Room for the manifest, and not for the steps of a run.
_DISK = '24k'

_RUN = """
import contextlib, functools, io, json, os, sys
from repertory.components import offline
from repertory.launch.cli import commands

disk, outcomes = sys.argv[1], []
runs = os.path.join(os.path.dirname(disk), 'runs')

def call(*arguments):
  printed = io.StringIO()
  with contextlib.redirect_stderr(printed):
    code = commands.run(arguments)
  outcomes.append([code, printed.getvalue(), sorted(os.listdir(disk))])

def train(name, *flags):
  call(
    'train', '--agent=dqn', '--env=catch', '--steps=600',
    '--config.hidden_sizes=8', '--config.min_replay_size=50',
    '--config.batch_size=8', '--evaluation_episodes=1',
    '--config.jit_compile=false', f'--directory={runs}/{name}', *flags,
  )
"""
_ONE_THREAD = """
train('whole', f'--record={disk}/a')
os.remove(f'{disk}/a/manifest.json')
os.rmdir(f'{disk}/a')
call('record', f'--directory={runs}/whole', '--episodes=60', f'{disk}/b')
whole = offline.RecordingWriter
offline.RecordingWriter = functools.partial(whole, file_bytes=30_000)
train('broken', f'--record={disk}/c')
offline.RecordingWriter = whole
os.system(f'mount -o remount,ro {disk}')
train('read_only', f'--record={disk}/d')
call('record', f'--directory={runs}/whole', '--episodes=1', f'{disk}/d')
print(json.dumps([outcomes, sorted(os.listdir(runs))]))
"""
_TOPOLOGY = """
train('whole', f'--record={disk}/a', *TOPOLOGY)
print(json.dumps([outcomes, os.listdir(f'{disk}/a')]))
"""
_LACKS = (
  r'repertory: The recording lacks {} steps that could not be written: {} '
  r'\(OSError: \[Errno 28\] No space left on device'
)


@pytest.fixture
def disk(tmp_path):
  folder = tmp_path / 'disk'
  folder.mkdir()
  if not real_disk_errors.can_mount(folder):
    pytest.skip('needs the right to mount a file system')
  return folder


def _run(source, disk):
  printed = real_disk_errors.run_on_small_disk(_RUN + source, disk, _DISK)
  return json.loads(printed.strip().splitlines()[-1])


def test_lost_steps_are_reported(disk):
  outcomes, runs = _run(_ONE_THREAD, disk)
  whole, recorded, broken, *read_only = outcomes
  # All steps are in memory when the run ends; it has a checkpoint.
  assert whole[0] == 3
  assert re.search(_LACKS.format(600, '600 of actor/0'), whole[1])
  # Each episode of Catch has nine steps: 60 · 9.
  assert recorded[0] == 1
  assert 'repertory: 540 steps cannot be written' in recorded[1]
  assert 'No space left' in recorded[1]
  # A moment has 10 · 5 floats, an action and three numbers: 216 bytes. 30,000
  # bytes are 139 moments, which the first 14 episodes of ten have.
  assert broken[0] == 1
  assert "Node 'actor/0' failed" in broken[1]
  assert '126 steps cannot be written' in broken[1]
  assert 'lacks 126 steps that could not be written' in broken[1]
  for (code, printed, _), setting in zip(read_only, ('--record', 'OUTPUT')):
    assert code == 2
    assert f'repertory: {setting} must be writable, got {disk}/d' in printed
  assert runs == ['broken', 'whole']


@pytest.mark.chaos
@pytest.mark.parametrize(
  ('flags', 'num_steps', 'nodes'),
  [
    (
      ['--topology=distributed', '--num_actors=2', '--lp_launch_type=local_mp'],
      600,
      'actor',
    ),
    (['--topology=central', '--num_actors=2'], 600, 'actor'),
    (['--topology=gossip', '--num_actors=2'], 600, 'actor_learner'),
  ],
)
def test_lost_steps_of_all_nodes_are_reported(disk, flags, num_steps, nodes):
  source = f'TOPOLOGY = {flags}\n' + _TOPOLOGY
  ((code, printed, _),), files = _run(source, disk)
  assert code == 3, printed
  found = re.search(
    r'lacks ([\d,]+) steps that could not be written: (.*?) \(OSError', printed
  )
  counts = dict(part.split(' of ')[::-1] for part in found[2].split(', '))
  assert set(counts) == {f'{nodes}/0', f'{nodes}/1'}
  assert sum(map(int, counts.values())) == int(found[1]) == num_steps
  assert files == ['manifest.json']
