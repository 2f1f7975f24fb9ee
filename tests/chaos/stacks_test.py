"""Tests that runs move from one stack to another, and back."""

import json
import shutil
import sys

import numpy as np
import pytest

from repertory.components.runtime import versions
from support.launch import log_files, stack_checkpoints
from support.system import program, stacks

pytestmark = pytest.mark.chaos

_SECONDS = 900
_REPLAY = (
  '--config.min_replay_size=50',
  '--config.batch_size=8',
  '--config.samples_per_insert=2',
)
_DQN = ('--agent=dqn', '--env=catch:4x3', *_REPLAY)
_IMPALA = (
  '--agent=impala', '--env=catch:4x3', '--config.unroll_length=5',
  '--config.batch_size=2', '--num_actors=2',
)  # fmt: skip
_SERVER = ('--topology=distributed', '--replay=server')
_REVERB = ('--topology=distributed', '--replay=reverb')
_CASES = {
  'dqn-single': (*_DQN, '--topology=single'),
  'dqn-server': (*_DQN, *_SERVER),
  'dqn-reverb': (*_DQN, *_REVERB),
  'sac-single': (
    '--agent=sac', '--env=tensor:pendulum', '--topology=single', *_REPLAY
  ),
  'r2d2-reverb': (
    '--agent=r2d2', '--env=catch:4x3', *_REVERB, *_REPLAY,
    '--config.core_size=8', '--config.burn_in_length=2',
    '--config.unroll_length=4', '--config.n_step=1',
    '--config.min_replay_size=10',
  ),
  'impala-server': (*_IMPALA, *_SERVER),
  'impala-reverb': (*_IMPALA, *_REVERB),
  'impala-gossip': (*_IMPALA, '--topology=gossip'),
  'dqn-anakin': (*_DQN, '--topology=anakin', '--env=tensor:catch'),
}  # fmt: skip


@pytest.fixture(scope='module', name='others')
def _others():
  """The Python interpreters of the other stacks, by version."""
  return {version: stacks.find(version) for version in stacks.OTHERS}


def _repertory(python, *arguments, cwd) -> str:
  running = program.repertory(*arguments, cwd=cwd, python=python)
  ended = running.wait(_SECONDS)
  assert ended.code == 0, ended.output
  assert ended.left == []
  return ended.output


def _train(python, settings, steps, cwd):
  """Continues training; returns the checkpoint and the output."""
  printed = _repertory(
    *(python, 'train', *settings, f'--steps={steps}', '--directory=run'),
    *('--config.hidden_sizes=8', '--config.jit_compile=false'),
    '--evaluation_episodes=0',
    cwd=cwd,
  )
  return stack_checkpoints.load(cwd / 'run'), ' '.join(printed.split())


def _inserts(checkpoint):
  return sum(table['inserts'] for table in checkpoint.state['tables'].values())


def _check_restores(python, checkpoint, settings, directory):
  """Restores and saves a copy of a run, with no steps left."""
  shutil.copytree(directory.parent / 'run', directory / 'run')
  steps = checkpoint.state['counts']['steps']
  if '--topology=gossip' not in settings:
    # Where it is saved even if nothing has changed.
    settings = (*settings, '--topology=single')
  restored, _ = _train(python, settings, steps, directory)
  assert checkpoint.arrays.keys() == restored.arrays.keys()
  for name, array in checkpoint.arrays.items():
    np.testing.assert_array_equal(array, restored.arrays[name], err_msg=name)
    assert array.dtype == restored.arrays[name].dtype, name
  counts, found = checkpoint.state['counts'], restored.state['counts']
  assert {**found, 'runs': 0} == {**counts, 'runs': 0}
  if '--topology=single' in settings:
    assert found['runs'] == counts['runs'] + 1


def _check_went_on(before, after, settings):
  for name in ('steps', 'learner_steps', 'episodes'):
    assert after.state['counts'][name] > before.state['counts'][name], name
  if '--topology=gossip' in settings:
    return  # What is counted there is of several learners.
  assert _inserts(after) > _inserts(before)
  counters = stack_checkpoints.counters(before.arrays)
  assert any(name.startswith('other/') for name in counters)
  assert stack_checkpoints.counters(after.arrays) == counters


@pytest.mark.parametrize(
  'case',
  [
    case
    for case in _CASES
    if versions.has_reverb() or not case.endswith('-reverb')
  ],
)
def test_run_moves_and_comes_back(case, others, tmp_path):
  settings = _CASES[case]
  checkpoint, _ = _train(sys.executable, settings, 400, tmp_path)
  path = [
    python
    for version, python in others.items()
    if version in stacks.WITH_REVERB or not case.endswith('-reverb')
  ]
  for stay, python in enumerate([*path, sys.executable], start=2):
    steps = 400 * stay
    copy = tmp_path / f'copy-{steps}'
    copy.mkdir()
    _check_restores(python, checkpoint, settings, copy)
    moved, printed = _train(python, settings, steps, tmp_path)
    assert 'resumed from checkpoint' in printed
    assert 'empty' not in printed
    _check_went_on(checkpoint, moved, settings)
    checkpoint = moved
  rows = log_files.nodes(tmp_path / 'run')
  assert [row for row in rows if row.get('warning')] == []


def test_policy_and_recording_are_read(others, tmp_path):
  pythons = {stacks.HERE: sys.executable, **others}
  record = f'--record={tmp_path / "data"}'
  settings = (*_CASES['dqn-single'], record)
  for i, python in enumerate(pythons.values()):
    _train(python, settings, 200 + 100 * i, tmp_path)
  directory = '--directory=run'
  returns = [
    _repertory(python, 'evaluate', directory, '--episodes=20', cwd=tmp_path)
    for python in pythons.values()
  ]
  # Before them, TensorFlow may have printed notices.
  figures = {text[text.index('dqn on') :] for text in returns}
  assert len(figures) == 1
  # TensorFlow loads what an older one has exported, and not the reverse.
  actions = []
  for version, exporter in pythons.items():
    exported = f'exported-{version}'
    _repertory(exporter, 'export', directory, exported, cwd=tmp_path)
    actions += [
      _act(python, exported, tmp_path)
      for later, python in pythons.items()
      if later >= version
    ]
  assert len(set(actions)) == 1
  assert len(set(actions[0])) > 1
  for i, python in enumerate(pythons.values(), start=1):
    _repertory(
      *(python, 'train', '--agent=dqn', '--env=catch:4x3'),
      *('--topology=offline', '--data=data', '--config.hidden_sizes=8'),
      *('--config.jit_compile=false', '--evaluation_episodes=0'),
      *(f'--steps={50 * i}', '--directory=offline'),
      cwd=tmp_path,
    )


def _act(python, exported, cwd) -> tuple[int, ...]:
  """Returns the actions of a SavedModel for some random observations."""
  code = f"""
import json, numpy as np, tensorflow as tf
act = tf.saved_model.load({exported!r}).signatures['serving_default']
boards = np.random.default_rng(0).normal(size=[64, 4, 3])
actions = act(observation=tf.constant(boards, tf.float32))['action']
print(json.dumps(actions.numpy().tolist()))
"""
  printed = program.run(python, '-c', code, cwd=cwd, TF_CPP_MIN_LOG_LEVEL='3')
  return tuple(json.loads(printed.splitlines()[-1]))
