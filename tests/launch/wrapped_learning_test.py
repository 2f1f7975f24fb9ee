"""Trains agents that are wrapped; run by `make test-learning`."""

import pytest

from repertory import launch
from repertory.launch.experiments import callbacks

pytestmark = pytest.mark.learning

_over_seeds = pytest.mark.parametrize('seed', (1, 2, 3))


@pytest.fixture(scope='module')
def demonstrations(tmp_path_factory):
  """Ten episodes of CartPole that a trained DQN kept up to the end."""
  directory = tmp_path_factory.mktemp('expert')
  experiment = launch.make_experiment(
    'dqn', 'gym:CartPole-v1', max_steps=60_000, seed=1,
    directory=str(directory / 'run'), evaluation_period=5_000,
    evaluation_episodes=20, stop_when=callbacks.StopAtReturn(500.0),
  )  # fmt: skip
  launch.run(experiment, display=False)
  output = str(directory / 'episodes')
  launch.record(str(directory / 'run'), 10, output, best=True)
  return output


@_over_seeds
@pytest.mark.parametrize('wrap', ['sqil', 'gail'])
def test_dqn_imitates_ten_episodes(tmp_path, demonstrations, wrap, seed):
  experiment = launch.make_experiment(
    'dqn', 'gym:CartPole-v1', reward_model=wrap, config={'n_step': 1},
    max_steps=20_000, seed=seed, directory=str(tmp_path),
    demonstrations=(demonstrations,), demonstration_fraction=0.5,
    evaluation_episodes=50, evaluation_period=1_000,
    stop_when=callbacks.StopAtReturn(475.0),
  )  # fmt: skip
  status = launch.run(experiment, display=False).status
  assert status.evaluation_return is not None
  assert status.evaluation_return >= 475


@_over_seeds
@pytest.mark.parametrize('wrap', [None, 'rnd'])
def test_rnd_finds_what_is_deep_in_the_sea(tmp_path, wrap, seed):
  experiment = launch.make_experiment(
    'dqn', 'bsuite:deep_sea/2', reward_model=wrap, config={'n_step': 1},
    max_steps=15_000, seed=seed, directory=str(tmp_path),
    evaluation_episodes=1,
  )  # fmt: skip
  best = launch.run(experiment, display=False).status.best_return
  assert best is not None
  # The way to the treasure costs 0.01, and there is no other reward.
  assert best == pytest.approx(0.99) if wrap else best <= 0
