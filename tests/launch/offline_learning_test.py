"""Trains agents on data alone; run by `make test-learning`."""

import csv
import math
import statistics
from typing import NamedTuple

import pytest

from repertory import launch
from repertory.components import offline
from repertory.launch.experiments import callbacks
from repertory.launch.topologies import offline as topologies_offline
from support.replay import recorded_episodes

pytestmark = pytest.mark.learning

# Small networks are enough for Pendulum, and take a fraction of the time.
_SMALL = {'hidden_sizes': (64, 64)}
# Ten times the step size, for a hundredth of the paper's learner steps.
_IQL = {
  **_SMALL, 'learning_rate': 3e-3, 'policy_anneal_learner_steps': 10_000
}  # fmt: skip
# Discounted returns are between −500 and 0; what is worse than the data less.
_CRR = {
  **_SMALL, 'vmin': -1_000.0, 'vmax': 0.0, 'num_atoms': 101,
  'learning_rate': 1e-3, 'target_update_period': 20,
}  # fmt: skip
# The values, down to −400, are larger than those that the paper's 5 is for.
_CQL = {**_SMALL, 'conservative_weight': 20.0}

_over_seeds = pytest.mark.parametrize('seed', (1, 2, 3))


def _learn(
  directory, agent, environment, data, evaluation_episodes=100, **settings
):
  """Trains an agent on a recording; returns its last mean return."""
  experiment = launch.make_experiment(
    agent, environment, evaluation_episodes=evaluation_episodes,
    directory=str(directory), **settings,
  )  # fmt: skip
  topology = topologies_offline.Offline(data=(str(data),))
  return launch.run(
    experiment, topology, display=False
  ).status.evaluation_return


@_over_seeds
def test_dqn_catches_after_random_actions(tmp_path, seed):
  data = str(tmp_path / 'data')
  spec = recorded_episodes.play_randomly(data, 'catch', 5_000, 1, seed)
  # A random player catches every fifth ball or so.
  rewards = next(offline.open_data(data).read(spec)).reward
  assert rewards.sum() < -200
  mean_return = _learn(
    tmp_path / 'run', 'dqn', 'catch', data, max_steps=2_000, seed=seed
  )
  assert mean_return is not None and mean_return >= 0.9


class Recording(NamedTuple):
  """Recorded episodes of a policy.

  Attributes:
    directory: The folder of the data.
    returns: Of the episodes of the data, which explore.
    unexplored: Of as many others of the same policy, which do not.
  """

  directory: str
  returns: list[float]
  unexplored: list[float]


def _error(returns):
  """The standard error of the mean."""
  return statistics.stdev(returns) / math.sqrt(len(returns))


@pytest.fixture(scope='session')
def half_trained(tmp_path_factory):
  """Fifty episodes, 10,000 steps, of SAC that has half learned Pendulum."""
  # Processors and versions round differently, and most is learned within 500
  # steps; so the return says when half is learned, not the number of steps.
  folder = tmp_path_factory.mktemp('half_trained')
  run, data = str(folder / 'run'), str(folder / 'data')
  experiment = launch.make_experiment(
    'sac', 'gym:Pendulum-v1', max_steps=6_000, seed=1, deterministic=True,
    directory=run, evaluation_period=100, evaluation_episodes=20,
    # Half way from −1,300, which is nothing, to −150, which is all.
    stop_when=callbacks.StopAtReturn(-725.0),
  )  # fmt: skip
  launch.run(experiment, 'single', display=False)
  returns = launch.record(run, 50, data, explore=True)
  unexplored = launch.record(run, 50, str(folder / 'unexplored'))
  return Recording(data, returns, unexplored)


class TestHalfTrained:
  def test_there_is_more_to_learn(self, half_trained):
    # The premise: nothing is about −1,300, and all about −150.
    assert -1_000 < statistics.mean(half_trained.returns) < -300

  @_over_seeds
  @pytest.mark.parametrize(
    ('agent', 'max_steps', 'settings'),
    [
      ('td3', 10_000, {'preset': 'td3_bc', 'config': _SMALL}),
      ('iql', 10_000, {'config': _IQL}),
      ('crr', 10_000, {'config': _CRR}),
      ('sac', 6_000, {'preset': 'cql', 'config': _CQL}),
    ],
  )
  def test_is_surpassed(
    self, tmp_path, half_trained, agent, max_steps, settings, seed
  ):
    mean_return = _learn(
      tmp_path, agent, 'gym:Pendulum-v1', half_trained.directory, seed=seed,
      max_steps=max_steps, evaluation_period=max_steps, **settings,
    )  # fmt: skip
    returns = half_trained.returns
    assert mean_return > statistics.mean(returns) + 3 * _error(returns)

  @_over_seeds
  def test_is_cloned(self, tmp_path, half_trained, seed):
    _learn(
      tmp_path, 'bc', 'gym:Pendulum-v1', half_trained.directory, seed=seed,
      max_steps=10_000, config=_SMALL, evaluation_period=1_000,
      evaluation_episodes=25,
    )  # fmt: skip
    # One clone differs from the next by a hundred: the mean of six of them.
    with open(tmp_path / 'logs' / 'evaluator.csv') as file:
      rows = list(csv.DictReader(file))
    returns = [
      float(row['episode_return']) for row in rows if int(row['steps']) >= 5_000
    ]
    assert len(returns) == 6
    # They do not explore, so they are compared with what did not. The band is
    # how much one episode of that differs from the next.
    unexplored = half_trained.unexplored
    band = statistics.stdev(unexplored)
    found = statistics.mean(returns)
    assert abs(found - statistics.mean(unexplored)) < band
