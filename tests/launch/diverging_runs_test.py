"""Tests of runs whose rewards overflow the loss, or with no finite numbers."""

import functools

import numpy as np
import pytest

from repertory import launch
from repertory.agents import impala, ppo
from repertory.environments.registry import registry
from repertory.launch.experiments import directories
from support.environments import follow
from support.launch import log_files
from support.system import rare_cases

_LARGEST = np.finfo(np.float32).max


class _Poisonous(registry.EnvironmentFactory):
  """Makes Catch, but one reward of many is as large as a number can be."""

  def __call__(self, seed):
    environment = super().__call__(seed)
    step, count = environment.step, iter(range(10**9))

    def poisonous_step(action):
      timestep = step(action)
      if timestep.last() and next(count) == 40:
        return timestep._replace(reward=_LARGEST)
      return timestep

    environment.step = poisonous_step
    return environment


def _experiment(directory, **settings):
  config = impala.IMPALAConfig(
    hidden_sizes=(8,), unroll_length=9, jit_compile=False
  )
  return launch.Experiment(
    impala.IMPALABuilder(config),
    _Poisonous('catch'),
    max_steps=900,
    directory=str(directory),
    environments_per_actor=1,
    evaluation_episodes=0,
    timeout_seconds=30,
    **settings,
  )


def test_stops_and_saves_the_batch(tmp_path):
  with pytest.raises(launch.NodeError, match='FloatingPointError') as error:
    launch.run(_experiment(tmp_path), display=False)
  assert error.value.failure.node == 'learner'
  (path,) = (tmp_path / 'diverged').iterdir()
  assert str(path) in str(error.value)
  with np.load(path, allow_pickle=False) as arrays:
    assert arrays['data/reward'].max() == _LARGEST
  assert directories.load_checkpoint(str(tmp_path)) is None
  message = str(error.value).rstrip()
  assert message.endswith('or skip such steps (on_divergence: skip).')


def test_skips_and_goes_on_if_asked_for(tmp_path):
  result = launch.run(
    _experiment(tmp_path, on_divergence='skip'), display=False
  )
  assert result.status.steps == 900
  rows = log_files.rows(tmp_path, 'learner')
  assert rows[-1]['skipped_updates'] == 1
  assert sum(row.get('loss_nonfinite') or 0 for row in rows) == 1
  assert log_files.total(rows) == result.status.learner_steps
  assert not (tmp_path / 'diverged').exists()
  checkpoint = directories.load_checkpoint(str(tmp_path))
  assert all(np.isfinite(array).all() for array in checkpoint.arrays.values())
  # Whether to skip may change when a run is resumed.
  assert not any(
    'divergence' in name for name in checkpoint.state['experiment']
  )


_TOPOLOGIES = rare_cases.daily(
  ['single', 'distributed', 'central', 'sebulba', 'gossip'], ['single']
)


def _make_odd(odd, seed):
  """Makes an environment with one observation of given numbers."""
  environment = follow.Follow(seed)
  step, count = environment.step, iter(range(10**9))

  def odd_step(action):
    timestep = step(action)
    if next(count) == 44:
      return timestep._replace(observation=np.full([2], odd, np.float32))
    return timestep

  environment.step = odd_step
  return environment


def _run_odd(directory, topology, odd):
  config = ppo.PPOConfig(
    hidden_sizes=(8,),
    unroll_length=9,
    batch_size=2,
    num_minibatches=2,
    normalize_observations=True,
    jit_compile=False,
  )
  experiment = launch.Experiment(
    ppo.PPOBuilder(config),
    functools.partial(_make_odd, odd),
    max_steps=600,
    directory=str(directory),
    environments_per_actor=2,
    evaluation_episodes=0,
    timeout_seconds=30,
    on_divergence='skip',
  )
  return launch.run(experiment, topology, display=False)


@pytest.mark.parametrize('topology', _TOPOLOGIES)
def test_infinite_observation_costs_one_update(tmp_path, topology):
  assert _run_odd(tmp_path, topology, np.inf).status.steps >= 600
  rows = log_files.rows(tmp_path, 'learner')
  # Two environments have one each, and in a batch both.
  assert max(row['skipped_updates'] for row in rows) in (1, 2)
  # What was clipped was finite.
  assert not any(name.endswith('_nonfinite') for row in rows for name in row)


@pytest.mark.parametrize('topology', _TOPOLOGIES)
def test_action_that_is_not_finite_is_named_at_its_step(tmp_path, topology):
  with pytest.raises(
    launch.NodeError,
    match=r'FloatingPointError: Slot \d, step \d of its episode: `actions`: '
    r'expected finite numbers, found \[nan, nan\]',
  ) as error:
    _run_odd(tmp_path, topology, np.nan)
  assert 'actor' in error.value.failure.node
