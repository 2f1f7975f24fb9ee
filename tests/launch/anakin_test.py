"""Tests of the topology `anakin`, beside `single`."""

import functools
import glob
import os

import numpy as np
import pytest
import tensorflow as tf

from repertory import launch
from repertory.agents import dqn, impala
from repertory.environments import tensor
from repertory.environments.registry import registry
from repertory.environments.tensor import catch
from repertory.launch.experiments import directories
from support.launch import log_files
from support.system import rare_cases

# Episodes of this Catch have 8 steps; the ninth step record is the next start.
_CATCH = 'tensor:catch:9x5'
_NUM_ENVIRONMENTS = 4
_LARGEST = np.finfo(np.float32).max
_SMALL = {'hidden_sizes': (8,), 'jit_compile': False}
_LSTM = {'core': 'lstm', 'core_size': 8, 'previous_action_and_reward': True}
_GTRXL = {
  'core': 'gtrxl', 'core_size': 8, 'core_heads': 2, 'core_window': 6,
  'core_layers': 1,
}  # fmt: skip
_DQN = {
  'min_replay_size': 30,
  'batch_size': 8,
  'samples_per_insert': 1.0,
  'max_replay_size': 60,
}


def _experiment(directory, agent, environment, config, **settings):
  defaults = {
    'config': {**_SMALL, **config},
    'environments_per_actor': _NUM_ENVIRONMENTS,
    'evaluation_episodes': 0,
    'directory': str(directory),
    'seed': 3,
  }
  return launch.make_experiment(agent, environment, **{**defaults, **settings})


def _run(directory, topology, *arguments, **settings):
  """Runs an experiment; returns its result and the saved arrays."""
  experiment = _experiment(directory, *arguments, **settings)
  result = launch.run(experiment, topology, display=False)
  return result, directories.load_checkpoint(str(directory)).arrays


def _acting_arrays(directory):
  """Returns environments, policy state and experience of the checkpoint."""
  path = directories.load_checkpoint(str(directory)).path
  (file,) = glob.glob(os.path.join(path, '**', 'program.npz'), recursive=True)
  with np.load(file) as arrays:
    return dict(arrays)


def _assert_same(one, other):
  assert one.keys() == other.keys()
  for name in one:
    np.testing.assert_array_equal(one[name], other[name], err_msg=name)


# Agent, environment, settings, steps and updates. All iterations and the last
# step of `single` end at the same time, so no unroll is half made.
_CASES = {
  # 26 moments, of which 24 are steps; two updates after every second one.
  'impala': ('impala', _CATCH, {'unroll_length': 2, 'batch_size': 2}, 96, 26),
  # 44 moments, of which 40 are steps; an update of 8 unrolls after every
  # fourth one.
  'ppo': ('ppo', _CATCH, {'unroll_length': 2}, 160, 11),
  # 35 moments, of which 30 are steps; an update after every fifth one.
  'lstm': (
    'impala',
    'tensor:memory_chain:4',
    {'unroll_length': 5, 'batch_size': 4, **_LSTM},
    120,
    7,
  ),
  # A window that is longer than unrolls and than episodes.
  'gtrxl': (
    'impala',
    'tensor:memory_chain:4',
    {'unroll_length': 5, 'batch_size': 4, **_GTRXL},
    120,
    7,
  ),
  # Actions of several parts, and a memory. 15 moments, of which 14 are steps;
  # an update of 4 unrolls after every third one.
  'parts': (
    'ppo',
    'tensor:lock?key=true',
    {'unroll_length': 3, 'batch_size': 4, **_LSTM},
    56,
    5,
  ),
  # Masked actions, normalization and a schedule. 45 moments, of which 44 are
  # steps, as episodes have 40; an update of 4 unrolls after every fifth one.
  'masks': (
    'ppo',
    'tensor:gates',
    {
      'unroll_length': 5,
      'batch_size': 4,
      'normalize_observations': True,
      'normalize_rewards': True,
      'learning_rate': 'linear(1e-2,0)',
    },
    176,
    9,
  ),
}


@pytest.mark.parametrize('name', rare_cases.daily(_CASES, ['impala', 'masks']))
def test_learns_what_single_learns_to_the_last_bit(name, tmp_path):
  agent, environment, config, steps, updates = _CASES[name]
  found, saved = {}, {}
  for topology in ('single', 'anakin'):
    result, saved[topology] = _run(
      tmp_path / topology,
      topology,
      agent,
      environment,
      config,
      max_steps=steps,
      deterministic=True,  # Else NumPy may act in `single`.
    )
    status = result.status
    found[topology] = (
      status.steps,
      status.episodes,
      status.learner_steps,
      status.mean_return,
    )
    rows = log_files.rows(tmp_path / topology, 'actors')
    assert log_files.total(rows) == status.episodes
    rows = log_files.rows(tmp_path / topology, 'learner')
    assert log_files.total(rows) == updates
  assert found['single'] == found['anakin']
  assert found['anakin'][0] == steps
  assert found['anakin'][2] == updates
  _assert_same(saved['single'], saved['anakin'])


@pytest.mark.chaos
@pytest.mark.parametrize(
  ('agent', 'config'),
  [
    ('impala', {'unroll_length': 4, 'batch_size': 2}),
    ('dqn', {**_DQN, 'prioritized': True}),
  ],
)
def test_resumed_run_is_as_one_that_was_never_stopped(agent, config, tmp_path):
  arguments = 'anakin', agent, _CATCH, config
  whole, expected = _run(tmp_path / 'whole', *arguments, max_steps=400)
  first, _ = _run(tmp_path / 'parts', *arguments, max_steps=150)
  second, found = _run(tmp_path / 'parts', *arguments, max_steps=400)
  assert 'resumed from checkpoint' in second.status.message
  assert 'empty' not in second.status.message
  assert 150 <= first.status.steps < 170
  assert whole.status.steps == second.status.steps
  assert whole.status.episodes == second.status.episodes
  _assert_same(found, expected)
  _assert_same(
    _acting_arrays(tmp_path / 'parts'), _acting_arrays(tmp_path / 'whole')
  )
  assert whole.variables_sha256 == second.variables_sha256


class _OwnLearner(dqn.DQNBuilder):
  def make_learner(self, *parts):
    return super().make_learner(*parts)


def test_agents_that_override_what_it_replaces_are_refused(tmp_path):
  directory = tmp_path / 'run'
  experiment = launch.Experiment(
    _OwnLearner(), registry.make_factory(_CATCH), 100, str(directory)
  )
  message = 'topology must be another one for _OwnLearner, which overrides make'
  with pytest.raises(ValueError, match=message):
    launch.run(experiment, 'anakin', display=False)
  assert not directory.exists()


@pytest.mark.parametrize(
  ('agent', 'environment', 'config', 'message'),
  [
    ('dqn', 'gym:CartPole-v1', {}, 'expected an environment that can be comp'),
    ('dqn', 'catch', {}, "got 'catch'. Did you mean 'tensor:catch'"),
    (
      'impala',
      _CATCH,
      {'across_episodes': False, 'batch_size': 4},
      'across_episodes must be true',
    ),
    ('impala', _CATCH, {'batch_size': 3}, 'batch_size must be a multiple or'),
    # Of 4 environments, three items may go besides the one that must.
    (
      'dqn',
      _CATCH,
      {'max_replay_size': 12, 'min_replay_size': 10},
      'max_replay_size must be at least 13',
    ),
    (
      'dqn',
      _CATCH,
      {'max_replay_size': 10**9, 'min_replay_size': 10},
      'max_replay_size must fit into the',
    ),
  ],
)
def test_what_no_program_can_hold_is_refused(
  agent, environment, config, message, tmp_path
):
  directory = tmp_path / 'run'
  experiment = _experiment(directory, agent, environment, config, max_steps=100)
  with pytest.raises(ValueError, match=message):
    launch.run(experiment, 'anakin', display=False)
  assert not directory.exists()


class _Poisonous(catch.TensorCatch):
  """Pays as much as a number can be at the end of each episode."""

  def advance(self, core, action, counters):
    advance = super().advance(core, action, counters)
    reward = tf.where(tf.equal(advance.reward, 0), 0.0, _LARGEST)
    return advance._replace(reward=reward)


def test_update_that_diverges_is_reported_with_its_batch(tmp_path):
  config = impala.IMPALAConfig(**_SMALL, unroll_length=3, batch_size=4)
  experiment = launch.Experiment(
    builder=impala.IMPALABuilder(config),
    environment_factory=tensor.Factory(functools.partial(_Poisonous, 9, 5)),
    directory=str(tmp_path),
    environments_per_actor=_NUM_ENVIRONMENTS,
    evaluation_episodes=0,
    max_steps=400,
  )
  with pytest.raises(launch.NodeError, match='FloatingPointError') as error:
    launch.run(experiment, 'anakin', display=False)
  # The eighth step of all environments ends their first episodes.
  assert 'diverged in learner step 3' in str(error.value)
  assert error.value.failure.node == 'learner'
  (path,) = (tmp_path / 'diverged').iterdir()
  assert path.name == 'step_3.npz'
  with np.load(path, allow_pickle=False) as arrays:
    expected = [[0, _LARGEST, 0]] * _NUM_ENVIRONMENTS
    np.testing.assert_array_equal(arrays['data/reward'], expected)
  assert directories.load_checkpoint(str(tmp_path)) is None
