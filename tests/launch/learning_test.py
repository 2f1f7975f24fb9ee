"""Trains agents to a stated return; run by `make test-learning`."""

import csv
import pathlib

import pytest

import program
from repertory import launch

pytestmark = pytest.mark.learning

_SEEDS = (1, 2, 3)
_TOPOLOGIES = (
  ('single', 'local_mt'),
  ('distributed', 'local_mt'),
  ('distributed', 'local_mp'),
)


def _train(
  directory,
  environment,
  steps,
  topology,
  launch_type,
  seed,
  actors,
  agent='dqn',
  settings=(),
):
  """Trains an agent in a process of its own; returns its last evaluation."""
  ended = program.repertory(
    'train',
    f'--agent={agent}',
    *settings,
    f'--env={environment}',
    f'--steps={steps}',
    f'--topology={topology}',
    *([f'--lp_launch_type={launch_type}'] if topology != 'single' else []),
    f'--num_actors={actors}',
    f'--seed={seed}',
    '--evaluation_episodes=100',
    f'--evaluation_period={steps}',
    '--directory=run',
    cwd=directory,
  ).wait(900)
  assert ended.code == 0, ended.output
  assert ended.left == []
  path = pathlib.Path(directory, 'run', 'logs', 'evaluator.csv')
  with path.open() as file:
    rows = list(csv.DictReader(file))
  return float(rows[-1]['episode_return'])


class TestDQN:
  @pytest.mark.parametrize(('topology', 'launch_type'), _TOPOLOGIES)
  @pytest.mark.parametrize('seed', _SEEDS)
  def test_catch(self, tmp_path, topology, launch_type, seed):
    # 9,000 steps are 1,000 episodes. The return is that of the greedy policy,
    # over 100 episodes: with two actors the ε ladder makes one of them random.
    actors = 1 if topology == 'single' else 2
    mean_return = _train(
      tmp_path, 'catch', 9_000, topology, launch_type, seed, actors
    )
    assert mean_return >= 0.9

  @pytest.mark.parametrize('seed', _SEEDS)
  def test_catch_return_while_training(self, tmp_path, seed):
    # The mean of the last 100 training episodes out of 1,000, ε = 0.016.
    experiment = launch.make_experiment(
      'dqn', 'catch', max_steps=9_000, seed=seed, directory=str(tmp_path),
      evaluation_episodes=0,
    )  # fmt: skip
    status = launch.run(experiment, display=False).status
    assert status.num_returns == 100
    assert status.episodes == 1_000
    assert (status.mean_return or 0) >= 0.9

  @pytest.mark.parametrize(('topology', 'launch_type'), _TOPOLOGIES[:2])
  @pytest.mark.parametrize('seed', _SEEDS)
  def test_cartpole(self, tmp_path, topology, launch_type, seed):
    mean_return = _train(
      tmp_path, 'gym:CartPole-v1', 60_000, topology, launch_type, seed, 1
    )
    assert mean_return >= 400


class TestIMPALA:
  @pytest.mark.parametrize(('topology', 'launch_type'), _TOPOLOGIES)
  @pytest.mark.parametrize('seed', _SEEDS)
  def test_catch(self, tmp_path, topology, launch_type, seed):
    # 18,000 steps are 2,000 episodes.
    mean_return = _train(
      tmp_path, 'catch', 18_000, topology, launch_type, seed,
      actors=1 if topology == 'single' else 2,
      agent='impala',
      settings=(
        f'--environments_per_actor={4 if topology == "single" else 2}',
        '--config.batch_size=4',
        '--config.learning_rate=2e-3',
      ),
    )  # fmt: skip
    assert mean_return >= 0.9

  @pytest.mark.parametrize(('topology', 'launch_type'), _TOPOLOGIES)
  @pytest.mark.parametrize('seed', _SEEDS)
  def test_cartpole(self, tmp_path, topology, launch_type, seed):
    mean_return = _train(
      tmp_path, 'gym:CartPole-v1', 300_000, topology, launch_type, seed,
      actors=1 if topology == 'single' else 2,
      agent='impala',
      settings=(
        f'--environments_per_actor={8 if topology == "single" else 4}',
      ),
    )  # fmt: skip
    assert mean_return >= 450

  @pytest.mark.parametrize(('topology', 'launch_type'), _TOPOLOGIES)
  @pytest.mark.parametrize('seed', _SEEDS)
  def test_memory(self, tmp_path, topology, launch_type, seed):
    mean_return = _train(
      tmp_path, 'memory_chain:10', 150_000, topology, launch_type, seed,
      actors=1 if topology == 'single' else 2,
      agent='impala',
      settings=(
        f'--environments_per_actor={8 if topology == "single" else 4}',
        '--config.core=lstm',
        # An unroll must be able to hold a whole episode of 11 steps.
        '--config.unroll_length=40',
        '--config.batch_size=4',
        '--config.learning_rate=2e-3',
      ),
    )  # fmt: skip
    assert mean_return >= 0.95

  @pytest.mark.parametrize('seed', _SEEDS)
  def test_without_memory_it_stays_at_chance(self, tmp_path, seed):
    mean_return = _train(
      tmp_path, 'memory_chain:10', 150_000, 'single', '', seed, 1,
      agent='impala',
      settings=(
        '--environments_per_actor=8',
        '--config.unroll_length=40',
        '--config.batch_size=4',
        '--config.learning_rate=2e-3',
      ),
    )  # fmt: skip
    # ± 4 deviations of a mean over 100 episodes of ± 1.
    assert abs(mean_return) <= 0.4


class TestR2D2:
  @pytest.mark.parametrize(('topology', 'launch_type'), _TOPOLOGIES)
  @pytest.mark.parametrize('seed', _SEEDS)
  def test_memory(self, tmp_path, topology, launch_type, seed):
    # Previous actions would do for a memory: the agent could act out the cue.
    mean_return = _train(
      tmp_path, 'memory_chain:10', 30_000, topology, launch_type, seed,
      actors=1 if topology == 'single' else 2,
      agent='r2d2',
      settings=(
        f'--environments_per_actor={4 if topology == "single" else 2}',
        '--config.previous_action_and_reward=False',
      ),
    )  # fmt: skip
    assert mean_return >= 0.95
