"""Trains agents on data alone; run by `make test-learning`."""

import math
import statistics
from typing import NamedTuple

import pytest

import recorded_episodes
from repertory import launch
from repertory.components import recordings
from repertory.launch.topologies import offline

pytestmark = pytest.mark.learning

_FAST_CRR = {'learning_rate': 1e-3, 'target_update_period': 20}

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


class Recording(NamedTuple):
  """What a policy did: where it is; mean and deviation of its returns."""

  directory: str
  mean: float
  deviation: float


@pytest.fixture(scope='session')
def half_trained(tmp_path_factory):
  """Fifty episodes, 10,000 steps, of SAC that has half learned Pendulum."""
  folder = tmp_path_factory.mktemp('half_trained')
  experiment = launch.make_experiment(
    'sac', 'gym:Pendulum-v1', max_steps=4_000, seed=1, deterministic=True,
    directory=str(folder / 'run'), evaluation_episodes=0,
  )  # fmt: skip
  launch.run(experiment, 'single', display=False)
  data = str(folder / 'data')
  returns = launch.record(str(folder / 'run'), 50, data, explore=True)
  return Recording(data, statistics.mean(returns), statistics.stdev(returns))


class TestHalfTrained:
  def test_there_is_more_to_learn(self, half_trained):
    # The premise: nothing is about −1,300, and all about −150.
    assert -1_000 < half_trained.mean < -300

  @_over_seeds
  @pytest.mark.parametrize(
    ('agent', 'max_steps', 'settings'),
    [
      ('td3', 10_000, {'preset': 'td3_bc'}),
      ('iql', 30_000, {}),
      # On some data its critics diverge: see docs/offline.md.
      pytest.param(
        'crr',
        7_500,
        {'config': _FAST_CRR},
        marks=pytest.mark.xfail(reason='Its critics have no bound.'),
      ),
    ],
  )
  def test_is_surpassed(
    self, tmp_path, half_trained, agent, max_steps, settings, seed
  ):
    mean_return = _learn(
      tmp_path, agent, 'gym:Pendulum-v1', half_trained.directory,
      max_steps=max_steps, evaluation_period=max_steps, seed=seed, **settings,
    )  # fmt: skip
    error = half_trained.deviation / math.sqrt(50)
    assert mean_return > half_trained.mean + 3 * error

  @_over_seeds
  def test_is_cloned(self, tmp_path, half_trained, seed):
    mean_return = _learn(
      tmp_path, 'bc', 'gym:Pendulum-v1', half_trained.directory,
      config={'learning_rate': 1e-3}, max_steps=5_000, evaluation_period=5_000,
      seed=seed,
    )  # fmt: skip
    assert abs(mean_return - half_trained.mean) < half_trained.deviation
