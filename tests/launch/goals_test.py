"""Runs of agents that learn from achieved goals."""

import dataclasses

import numpy as np
import pytest

from repertory import launch
from repertory.components.config.settings import SettingError
from repertory.environments.registry import registry
from support.agents import trainings
from support.environments import goal_environments
from support.launch import log_files
from support.system import rare_cases

_SMALL = {
  'hidden_sizes': (8,), 'batch_size': 16, 'min_replay_size': 50,
  'samples_per_insert': 2.0, 'hindsight_goals': 2, 'jit_compile': False,
}  # fmt: skip


def never(achieved, desired):
  """Rewards that no goal changes."""
  del desired
  return np.full([len(achieved)], -1.0)


def three(achieved, desired, info):
  """A function of too many arguments."""


def scalar(achieved, desired):
  """Rewards of a wrong shape."""
  del achieved, desired
  return -1.0


def _make(directory, agent, factory, **settings):
  config = {**_SMALL, **settings}
  if agent == 'dqn':
    config = {'n_step': 1, **config}
  experiment = launch.make_experiment(
    agent, 'catch', config=config, max_steps=300, evaluation_episodes=0,
    seed=1, directory=str(directory),
  )  # fmt: skip
  return dataclasses.replace(experiment, environment_factory=factory)


@pytest.mark.parametrize(
  'topology', rare_cases.daily(['single', 'distributed', 'central'], ['single'])
)
@pytest.mark.parametrize('agent', ['dqn', 'sac', 'td3'])
def test_copies_are_learned_from(tmp_path, agent, topology):
  factory = goal_environments.BitFlip
  if agent == 'td3':
    factory = goal_environments.Point
  result = launch.run(_make(tmp_path, agent, factory), topology, display=False)
  (table,) = result.status.tables
  # Not more than three items a step; episodes make two of them at their end.
  assert 300 < table.inserts <= 3 * result.status.steps
  assert result.status.learner_steps > 10


class TestRefusals:
  def test_environments_without_rewards(self, tmp_path):
    experiment = _make(tmp_path, 'dqn', registry.make_factory('catch'))
    with pytest.raises(SettingError, match='hindsight_goals must be 0 for obs'):
      launch.run(experiment, display=False)

  @pytest.mark.parametrize(
    ('reward', 'problem'),
    [
      (f'{__name__}:nothing', "must be module:function, got .*'nothing'"),
      (f'{__name__}:scalar', 'scalar gave shape'),
      (f'{__name__}:three', "three gave TypeError: .*'info'"),
      (f'{__name__}:trainings', 'trainings gave TypeError: .*not callable'),
    ],
  )
  def test_wrong_functions(self, tmp_path, reward, problem):
    experiment = _make(
      tmp_path, 'dqn', goal_environments.BitFlip, hindsight_reward=reward
    )
    with pytest.raises(SettingError, match=problem):
      launch.run(experiment, display=False)

  def test_more_than_one_step(self, tmp_path):
    with pytest.raises(SettingError, match='n_step must be 1 with hindsight'):
      launch.run(
        _make(tmp_path, 'dqn', goal_environments.BitFlip, n_step=3),
        display=False,
      )

  def test_compiled_programs_and_data(self, tmp_path):
    experiment = _make(tmp_path, 'sac', registry.make_factory('tensor:catch'))
    with pytest.raises(SettingError, match='hindsight_goals'):
      launch.run(experiment, 'anakin', display=False)
    with pytest.raises(SettingError, match="must be 0 with topology 'offline'"):
      launch.run(experiment, 'offline', display=False)


def test_own_rewards_replace_those_of_the_environment(tmp_path):
  experiment = _make(
    tmp_path, 'dqn', goal_environments.BitFlip,
    hindsight_reward=f'{__name__}:never',
  )  # fmt: skip
  assert launch.run(experiment, display=False).status.learner_steps > 10


def _train(directory, agent, factory, seed, max_steps, **config):
  """Trains an agent; returns the share of evaluations that reach the goal."""
  experiment = launch.make_experiment(
    agent, 'catch', config=config, max_steps=max_steps, seed=seed,
    evaluation_episodes=100, evaluation_period=max_steps,
    directory=str(directory),
  )  # fmt: skip
  experiment = dataclasses.replace(experiment, environment_factory=factory)
  launch.run(experiment, display=False)
  row = log_files.rows(directory, 'evaluator')[-1]
  # The return of an episode is less its length, or one more at the goal.
  return row['episode_length'] + row['episode_return']


@pytest.mark.learning
class TestLearning:
  def test_flips_15_bits_only_with_hindsight(self, tmp_path):
    settings = {
      'n_step': 1, 'samples_per_insert': 4.0, 'discount': 0.98,
      'batch_size': 128, 'hidden_sizes': (256, 256),
    }  # fmt: skip
    for seed in trainings.SEEDS:
      with_goals, without = (
        _train(
          tmp_path / f'{seed}_{number}', 'dqn', goal_environments.BitFlip, seed,
          15_000, hindsight_goals=number, **settings,
        )
        for number in (4, 0)
      )  # fmt: skip
      assert with_goals >= 0.95
      assert without <= 0.1

  def test_moves_a_point_to_goals(self, tmp_path):
    for seed in trainings.SEEDS:
      share = _train(
        tmp_path / str(seed), 'sac', goal_environments.Point, seed, 6_000,
        hindsight_goals=4, samples_per_insert=51.2,
      )  # fmt: skip
      assert share >= 0.95
