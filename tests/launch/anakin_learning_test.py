"""Trains agents in one compiled program; run by `make test-learning`."""

import csv
import statistics

import pytest

from repertory import launch

pytestmark = pytest.mark.learning

_over_seeds = pytest.mark.parametrize('seed', (1, 2, 3))

_LAYERS = {'hidden_sizes': (64, 64)}
# Those of rl-baselines3-zoo, hyperparams/ppo.yml, but for the number of
# environments and so of steps.
_CARTPOLE_PPO = {
  'unroll_length': 32, 'num_epochs': 20, 'num_minibatches': 1,
  'discount': 0.98, 'lambda_': 0.8, 'entropy_cost': 0.0,
  'anneal_learner_steps': 780,
}  # fmt: skip


def _train(
  directory, agent, environment, steps, environments, seed, *, evaluations=1,
  preset=None, **config,
):  # fmt: skip
  """Trains an agent; returns the mean return of its last evaluation."""
  experiment = launch.make_experiment(
    agent, f'tensor:{environment}', max_steps=steps, config=config, seed=seed,
    preset=preset, directory=str(directory), evaluation_episodes=100,
    environments_per_actor=environments,
    evaluation_period=steps // evaluations,
  )  # fmt: skip
  status = launch.run(experiment, 'anakin', display=False).status
  assert status.evaluation_return is not None
  return status.evaluation_return


@_over_seeds
def test_impala_balances_the_pole(tmp_path, seed):
  mean_return = _train(
    tmp_path,
    'impala',
    'cartpole',
    2_000_000,
    64,
    seed,
    batch_size=64,
    **_LAYERS,
  )
  assert mean_return >= 475


@_over_seeds
def test_impala_plays_breakout(tmp_path, seed):
  mean_return = _train(
    tmp_path,
    'impala',
    'minatar/breakout',
    1_500_000,
    64,
    seed,
    preset='minatar',
  )
  # As of the same settings in `single`, see `learning_test.py`.
  assert mean_return > 28


@_over_seeds
def test_pqn_plays_breakout(tmp_path, seed):
  # Seeds 1, 2 and 3 had 11 to 13, and at first it is below 1. The run is 122
  # learner steps, a twentieth of what the preset is for.
  mean_return = _train(
    tmp_path,
    'pqn',
    'minatar/breakout',
    500_000,
    128,
    seed,
    preset='minatar',
    anneal_learner_steps=122,
    epsilon_anneal_steps=100_000,
  )
  assert mean_return >= 8


@_over_seeds
def test_ppo_balances_the_pole(tmp_path, seed):
  mean_return = _train(
    tmp_path, 'ppo', 'cartpole', 200_000, 8, seed, **_CARTPOLE_PPO
  )
  assert mean_return >= 475


@_over_seeds
def test_impala_remembers(tmp_path, seed):
  mean_return = _train(
    tmp_path, 'impala', 'memory_chain', 400_000, 16, seed, core='lstm',
    core_size=32, hidden_sizes=(32,), batch_size=16, unroll_length=40,
    learning_rate=2e-3,
  )  # fmt: skip
  assert mean_return >= 0.95


@_over_seeds
def test_dqn_catches(tmp_path, seed):
  mean_return = _train(tmp_path, 'dqn', 'catch', 9_000, 2, seed)
  assert mean_return >= 0.9


@_over_seeds
def test_dqn_balances_the_pole(tmp_path, seed):
  # As much as in `single`. It is solved, and forgotten for a while now and
  # then: of nine runs two had a mean of their last five evaluations below 400,
  # and none a median below 440.
  _train(tmp_path, 'dqn', 'cartpole', 60_000, 1, seed, evaluations=10)
  with (tmp_path / 'logs' / 'evaluator.csv').open() as file:
    returns = [float(row['episode_return']) for row in csv.DictReader(file)]
  assert max(returns) >= 475
  assert statistics.median(returns[-5:]) >= 420


@_over_seeds
def test_r2d2_remembers(tmp_path, seed):
  mean_return = _train(tmp_path, 'r2d2', 'memory_chain', 60_000, 4, seed)
  assert mean_return >= 0.9


@_over_seeds
@pytest.mark.parametrize('agent', ('sac', 'd4pg'))
def test_pendulum_is_swung_up(tmp_path, agent, seed):
  config = {}
  if agent == 'd4pg':
    config = {
      'vmin': -1000.0, 'vmax': 0.0, 'num_atoms': 101, 'n_step': 3,
      'samples_per_insert': 128.0,
    }  # fmt: skip
  mean_return = _train(
    tmp_path, agent, 'pendulum', 20_000 if config else 10_000, 1, seed, **config
  )
  assert mean_return >= -250
