"""Tests of the checkpoint of the best evaluated policy."""

import csv
import dataclasses
import errno
import pathlib

import dm_env
import numpy as np
import pytest
from dm_env import specs

from repertory import launch
from repertory.agents import dqn
from repertory.components.checkpoints import checkpointing
from repertory.launch.coordination import coordinator
from repertory.launch.experiments import directories
from repertory.launch.topologies import central
from support.launch import log_files, sessions
from support.system import rare_cases

_LENGTH = 12


class Revealing(dm_env.Environment):
  """Deterministic environment whose return identifies the policy."""

  def __init__(self, seed):
    del seed
    self._rewards = np.random.RandomState(3).normal(size=[_LENGTH, 4])
    self._time = 0

  def reset(self):
    self._time = 0
    return dm_env.restart(self._observation())

  def step(self, action):
    reward = float(self._rewards[self._time, action])
    self._time += 1
    if self._time < _LENGTH:
      return dm_env.transition(reward, self._observation())
    return dm_env.termination(reward, self._observation())

  def observation_spec(self):
    return specs.Array([_LENGTH + 1], np.float32)

  def action_spec(self):
    return specs.DiscreteArray(4)

  def _observation(self):
    return np.eye(_LENGTH + 1, dtype=np.float32)[self._time]


def _make_experiment(tmp_path, **settings):
  # With such steps every update makes another greedy policy.
  config = dqn.DQNConfig(
    hidden_sizes=(8,), min_replay_size=20, batch_size=8, learning_rate=0.3,
    samples_per_insert=1.0,
  )  # fmt: skip
  return launch.Experiment(
    dqn.DQNBuilder(config),
    Revealing,
    directory=str(tmp_path / 'run'),
    **{
      'max_steps': 900,
      'evaluation_period': 100,
      'evaluation_episodes': 1,
      **settings,
    },
  )


def _evaluations(tmp_path):
  with open(tmp_path / 'run' / 'logs' / 'evaluator.csv') as file:
    return [float(row['episode_return']) for row in csv.DictReader(file)]


@pytest.mark.parametrize(
  'topology',
  rare_cases.daily(
    [
      'single',
      'distributed',
      central.Central(num_inference_servers=1),
    ],
    ['single'],
  ),
  ids=str,
)
def test_saves_the_evaluated_policy(tmp_path, topology):
  experiment = _make_experiment(tmp_path)
  result = launch.run(experiment, topology, display=False)
  returns = _evaluations(tmp_path)
  if (
    topology == 'single'
  ):  # Other topologies may evaluate only once, if they are slow.
    assert len(set(returns)) > 1
  assert result.status.best_return == max(returns)
  assert result.best == str(tmp_path / 'run' / 'best')
  (episode,) = launch.evaluate(experiment, 1, best=True)
  assert episode.episode_return == pytest.approx(max(returns), rel=1e-6)


def test_without_evaluations_none_is_saved(tmp_path):
  experiment = _make_experiment(tmp_path, max_steps=50, evaluation_episodes=0)
  assert launch.run(experiment, display=False).best is None
  with pytest.raises(ValueError, match='must hold the policy of an evaluation'):
    launch.evaluate(experiment, 1, best=True)


@pytest.fixture(name='make_coordinator')
def _make_coordinator(tmp_path):
  made = []

  def make(is_resumed=False, **settings):
    experiment = _make_experiment(tmp_path, **settings)
    with sessions.open_session(experiment) as session:
      session = dataclasses.replace(session, is_resumed=is_resumed)
      made.append(coordinator.Coordinator(session))
    return made[-1]

  yield make
  for each in made:
    each.close()


def _policy(version):
  return {'policy/0000/w': np.ones([3]), 'learner_steps': np.asarray(version)}


def _kept(tmp_path):
  return directories.checkpoints_in(str(tmp_path / 'run'), best=True).load()


def test_the_first_of_the_best_is_kept(tmp_path, make_coordinator):
  counts = make_coordinator()
  for version, (returns, is_best) in enumerate(
    [([1.0, 2.0], True), ([1.0, 1.0], False), ([0.0, 3.0], False), ([2], True)]
  ):
    assert counts.report_evaluation(returns, [5] * len(returns)) == is_best
    if is_best:
      counts.keep_best('evaluator', _policy(version))
  assert _kept(tmp_path).state['evaluation'] == {
    'episode_return': 2.0,
    'steps': 0,
  }
  assert _kept(tmp_path).state['counts']['learner_steps'] == 3
  assert len(list((tmp_path / 'run' / 'best').iterdir())) == 1
  status = counts.status()
  assert (status.evaluation_return, status.best_return) == (2.0, 2.0)


def test_unreadable_checkpoint_is_a_warning(tmp_path, make_coordinator):
  first = make_coordinator()
  first.report_evaluation([5.0], [1])
  first.keep_best('evaluator', _policy(7))
  path = pathlib.Path(_kept(tmp_path).path) / 'arrays.npz'
  path.write_bytes(b'garbage')
  resumed = make_coordinator(is_resumed=True)
  assert 'best evaluation so far cannot be read' in resumed.status().message
  assert resumed.report_evaluation([1.0], [1])


def _fail(*arguments, **settings):
  raise OSError(errno.ENOSPC, 'no space')


def test_a_full_disk_keeps_the_last(tmp_path, make_coordinator, monkeypatch):
  counts = make_coordinator()
  counts.report_evaluation([1.0], [1])
  counts.keep_best('evaluator', _policy(1))
  with monkeypatch.context() as patched:
    patched.setattr(checkpointing.Checkpointer, 'save', _fail)
    counts.report_evaluation([2.0], [1])
    counts.keep_best('evaluator/1', _policy(2))
  (row,) = log_files.nodes(tmp_path / 'run')
  assert row['node'] == 'evaluator/1'
  assert 'best policy not saved' in row['warning']
  assert 'best policy not saved' in counts.status().message
  assert _kept(tmp_path).state['counts']['learner_steps'] == 1
  # So that a policy better than the saved one can replace it.
  assert counts.report_evaluation([1.5], [1])
