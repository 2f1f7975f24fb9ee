"""Trains agents on data alone; run by `make test-learning`."""

import pytest

import recorded_episodes
from repertory import launch
from repertory.components import recordings
from repertory.launch.topologies import offline

pytestmark = pytest.mark.learning

_over_seeds = pytest.mark.parametrize('seed', (1, 2, 3))


def _learn(directory, agent, environment, data, **settings):
  """Trains an agent on a recording; returns its last mean return."""
  experiment = launch.make_experiment(
    agent, environment, evaluation_episodes=100,
    directory=str(directory), **settings,
  )  # fmt: skip
  topology = offline.Offline(data=(str(data),))
  return launch.run(
    experiment, topology, display=False
  ).status.evaluation_return


@_over_seeds
def test_dqn_catches_after_random_actions(tmp_path, seed):
  data = str(tmp_path / 'data')
  spec = recorded_episodes.play_randomly(data, 'catch', 5_000, 1, seed)
  # A random player catches every fifth ball or so.
  rewards = next(recordings.open_data(data).read(spec)).reward
  assert rewards.sum() < -200
  mean_return = _learn(
    tmp_path / 'run', 'dqn', 'catch', data, max_steps=2_000, seed=seed
  )
  assert mean_return is not None and mean_return >= 0.9
