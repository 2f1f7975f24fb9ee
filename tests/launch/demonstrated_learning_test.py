"""Trains agents beside demonstrations; run by `make test-learning`."""

import numpy as np
import pytest

from repertory import launch
from repertory.launch.topologies import offline
from support.replay import recorded_episodes

pytestmark = pytest.mark.learning

_over_seeds = pytest.mark.parametrize('seed', (1, 2, 3))
# Down to the treasure; no reward on the way leads there.
_SEA = 'bsuite:deep_sea/2'
_CAR = 'gym:MountainCarContinuous-v0'


@pytest.fixture(scope='module')
def sea(tmp_path_factory):
  """Ten episodes of an agent that found it."""
  run, output = (
    str(tmp_path_factory.mktemp('sea') / name) for name in ('run', 'episodes')
  )
  experiment = launch.make_experiment(
    'dqn', _SEA, reward_model='rnd', config={'n_step': 1}, max_steps=15_000,
    seed=1, directory=run, evaluation_episodes=1,
  )  # fmt: skip
  assert launch.run(experiment, display=False).status.best_return is not None
  launch.record(run, 10, output, best=True)
  return output


@pytest.fixture(scope='module')
def car(tmp_path_factory):
  """Eleven episodes of a car that is pushed where it is going."""
  output = str(tmp_path_factory.mktemp('car') / 'episodes')

  def push(observation, spec):
    del spec
    return np.where(observation[:, 1:] >= 0, 1.0, -1.0)

  recorded_episodes.play(output, _CAR, push, 1_200)
  return output


def _train(directory, agent, environment, data, *, topology='single', **more):
  if topology == 'single' and data:
    more |= {'demonstrations': (data,), 'demonstration_fraction': 0.25}
  experiment = launch.make_experiment(
    agent, environment, directory=str(directory), **more
  )
  status = launch.run(experiment, topology, display=False).status
  assert status.evaluation_return is not None
  return status.evaluation_return


@_over_seeds
@pytest.mark.parametrize('preset', ['dqfd', None])
def test_dqfd_learns_from_data_alone(tmp_path, sea, preset, seed):
  found = _train(
    tmp_path, 'dqn', _SEA, sea, topology=offline.Offline(data=(sea,)),
    preset=preset, max_steps=1_000, seed=seed, evaluation_episodes=1,
  )  # fmt: skip
  # The way there costs 0.01, and there is no other reward.
  assert found == pytest.approx(0.99) if preset else found <= 0


@_over_seeds
@pytest.mark.parametrize(
  ('agent', 'settings', 'steps'),
  [
    ('dqn', {'preset': 'dqfd'}, 3_000),
    (
      'r2d2',
      {'config': {'learning_rate': 1e-3, 'samples_per_insert': 32.0}},
      10_000,
    ),
  ],
)
def test_dqfd_and_r2d3(tmp_path, sea, agent, settings, steps, seed):
  found = _train(
    tmp_path, agent, _SEA, sea, **settings, max_steps=steps, seed=seed,
    evaluation_episodes=1,
  )  # fmt: skip
  assert found == pytest.approx(0.99)


@_over_seeds
@pytest.mark.parametrize('is_shown', [True, False])
def test_sacfd_climbs_where_sac_stays(tmp_path, car, is_shown, seed):
  found = _train(
    tmp_path, 'sac', _CAR, car if is_shown else None, max_steps=6_000,
    seed=seed, evaluation_episodes=10,
  )  # fmt: skip
  # The top is worth 100, and pushing costs; nothing is lost by standing still.
  assert found >= 60 if is_shown else found < 10
