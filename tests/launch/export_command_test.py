"""Tests of the commands `repertory export` and `evaluate`."""

import os

import numpy as np
import pytest
import tensorflow as tf

from repertory import launch
from repertory.launch.cli import commands
from support.agents import trained_agents


@pytest.fixture(autouse=True, scope='module')
def _folder(tmp_path_factory):
  """Trains a little, and changes to that folder."""
  before = os.getcwd()
  os.chdir(tmp_path_factory.mktemp('runs'))
  code = commands.run(
    [
      'train', '--env=catch', '--steps=60', '--directory=run',
      '--evaluation_episodes=2', '--config.min_replay_size=20',
      '--config.jit_compile=false',
    ]
  )  # fmt: skip
  assert code == 0
  yield
  os.chdir(before)


@pytest.mark.parametrize(
  ('best', 'directory'),
  [
    (False, ['run']),
    (True, ['--directory=run']),
  ],
)
def test_writes_the_policy(run_command, best, directory):
  output = f'models/{best}{len(directory)}'
  flags = [*directory, *(['--best'] if best else [])]
  code, out, _ = run_command('export', *flags, output)
  assert code == 0
  policy = launch.load_policy('run', best=best)
  assert out == (
    f'dqn on catch, learner step {policy.learner_steps}: written to {output}\n'
  )
  act = tf.saved_model.load(output).signatures['serving_default']
  random = np.random.default_rng(0)
  observation = trained_agents.draw(policy.spec.observations, random, 50)
  found = act(observation=tf.constant(observation))['action']
  np.testing.assert_array_equal(found, policy.act(observation))
  assert len(set(found.numpy().tolist())) > 1
  for number, message in ((1, '1 episode'), (2, '2 episodes')):
    code, out, _ = run_command('evaluate', *flags, f'--episodes={number}')
    assert code == 0
    assert f'catch, learner step {policy.learner_steps}, {message}\n' in out


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ([], 'Arguments must be DIRECTORY OUTPUT, where --directory'),
    (['none', 'a'], 'must hold a checkpoint, found none in none. It is not th'),
    (['--directory=run/logs', 'a'], 'the run, which that is a folder of.'),
    (['run/checkpoints/00000001', 'a'], 'Name the directory of the run, which'),
    (['--directory=run', 'run/.lock/a'], 'OUTPUT must be writable, got run/'),
    (['--directory=run', 'run'], 'must be a new folder, or an empty one; run '),
    (['--directory=run', 'a', '--config.n_step=3'], 'come from the checkpoint'),
  ],
)
def test_wrong_arguments(run_command, arguments, message):
  code, _, err = run_command('export', *arguments)
  assert code == 2
  assert message in err
  assert not os.path.exists('a')


def test_video_format_without_video(run_command):
  flags = ['--directory=run', '--video_format=gif']
  code, out, err = run_command('evaluate', *flags)
  assert (code, out) == (2, '')
  assert '--video_format requires --video' in err


def test_help_is_without_names_of_modules(run_command):
  code, out, _ = run_command('evaluate', '--help')
  assert code == 0
  for flag in ('--[no]best', '--directory', '--[no]video', '--video_format'):
    assert f'\n  {flag}: ' in out
  assert 'repertory.' not in out
  assert 'absl' not in out
  assert run_command('environments', '--help')[1] == (
    'repertory environments\n\nLists the environments.\n'
  )
