"""Tests of `repertory export` and `evaluate`, as they are typed."""

import os

import numpy as np
import pytest
import tensorflow as tf

import trained_agents
from repertory import launch
from repertory.launch.commands import commands


@pytest.fixture(autouse=True, scope='module')
def _folder(tmp_path_factory):
  """Trains a little, and goes there."""
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


def _run(capsys, *arguments):
  code = commands.run(arguments)
  captured = capsys.readouterr()
  return code, captured.out, captured.err


@pytest.mark.parametrize('best', [False, True])
def test_writes_the_policy(capsys, best):
  output = f'models/{best}'
  flags = ['--directory=run', *(['--best'] if best else [])]
  code, out, _ = _run(capsys, 'export', *flags, output)
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
  code, out, _ = _run(capsys, 'evaluate', *flags, '--episodes=2')
  assert code == 0
  assert f'catch, learner step {policy.learner_steps}, 2 episodes\n' in out


@pytest.mark.parametrize(
  ('arguments', 'told'),
  [
    (['--directory=run'], 'One folder to write to must be named besides the '),
    (['--directory=run', 'a', 'b'], 'besides the flags, got a b.'),
    (['a'], '--directory must name the directory of a trained agent.'),
    (['--directory=none', 'a'], '--directory must hold a checkpoint, found no'),
    (['--directory=run', 'run'], 'must be a new folder, or an empty one; run '),
    (['--directory=run', 'run/.lock'], 'empty one; run/.lock is a file.'),
    (['--directory=run', 'a', '--config.n_step=3'], 'come from the checkpoint'),
    (['--directory=run', 'a', '--bes'], "Unknown flag '--bes'. Did you mean"),
  ],
)
def test_wrong_arguments(capsys, arguments, told):
  code, _, err = _run(capsys, 'export', *arguments)
  assert code == 2
  assert told in err
  assert not os.path.exists('a')
