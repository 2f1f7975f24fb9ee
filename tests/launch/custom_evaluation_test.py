"""Tests of evaluations in other environments and with custom metrics."""

import time

import dm_env
import numpy as np
import pytest

from repertory import launch
from repertory.agents import dqn, r2d2
from repertory.components.actors import episode_metrics
from repertory.components.config.settings import SettingError
from repertory.environments.games import catch
from repertory.launch.experiments import environment_batches
from repertory.launch.platform import watchdog
from support.launch import log_files, recording_hooks
from support.system import rare_cases

_CONFIGS = {
  'dqn': dqn.DQNConfig(
    hidden_sizes=(8,), min_replay_size=50, batch_size=8, jit_compile=False,
    samples_per_insert=1.0,
  ),
  'r2d2': r2d2.R2D2Config(
    hidden_sizes=(8,), core_size=4, unroll_length=4, burn_in_length=2,
    sequence_period=4, n_step=2, min_replay_size=4, batch_size=2,
    samples_per_insert=1.0, jit_compile=False,
  ),
}  # fmt: skip
_BUILDERS = {'dqn': dqn.DQNBuilder, 'r2d2': r2d2.R2D2Builder}


class _Richer(catch.Catch):
  """Scales rewards by a hundred."""

  def step(self, action):
    timestep = super().step(action)
    return timestep._replace(reward=timestep.reward * np.float32(100))


class _Falling(episode_metrics.EpisodeMetric):
  """Counts balls and paddles of the board, and rows in which the ball was."""

  def begin(self, timestep):
    assert timestep.observation.shape == (10, 5)
    self._steps = [timestep.observation]

  def step(self, action, timestep):
    assert action.dtype == np.int32
    self._steps.append(timestep.observation)

  def value(self):
    return len({step.tobytes() for step in self._steps})


def _make(directory, agent='dqn', **settings):
  return launch.Experiment(
    _BUILDERS[agent](_CONFIGS[agent]),
    lambda seed: catch.Catch(seed=seed),
    directory=str(directory),
    **{'max_steps': 300, 'evaluation_episodes': 3, **settings},
  )


@pytest.mark.parametrize('agent', rare_cases.daily(['dqn', 'r2d2'], ['dqn']))
def test_environment_and_metrics_of_its_own(tmp_path, agent):
  callback = recording_hooks.Callback()
  experiment = _make(
    tmp_path,
    agent,
    evaluation_environment_factory=lambda seed: _Richer(seed=seed),
    evaluation_metrics={'boards': _Falling},
    callbacks=[callback],
  )
  result = launch.run(experiment, display=False)
  evaluations = callback.all_of('on_evaluation')
  assert {abs(r) for e in evaluations for r in e.returns} == {100}
  episodes = callback.all_of('on_episodes')
  assert {abs(r) for e in episodes for r in e.returns} == {1}
  rows = log_files.rows(tmp_path, 'evaluator')
  # The ball falls by a row in each step, so no two boards are equal.
  assert [row['boards'] for row in rows] == [10] * len(rows)
  assert rows[-1]['episode_return'] == result.status.evaluation_return
  evaluated = launch.evaluate(experiment, num_episodes=4)
  assert [abs(one.episode_return) for one in evaluated] == [100] * 4
  assert [one.metrics for one in evaluated] == [{'boards': 10}] * 4


class _OtherActions(catch.Catch):
  def action_spec(self):
    return dm_env.specs.DiscreteArray(4, np.int32, 'action')


@pytest.mark.parametrize(
  ('factory', 'problem'),
  [
    (lambda seed: catch.Catch(rows=7, seed=seed), r'observations .*10, 5.*; '
     r'got .*7, 5'),
    (lambda seed: _OtherActions(seed=seed), 'actions .*; got .*num_values=4'),
  ],
)  # fmt: skip
def test_environment_that_does_not_fit_is_refused(tmp_path, factory, problem):
  experiment = _make(tmp_path / 'run', evaluation_environment_factory=factory)
  with pytest.raises(SettingError, match=problem) as caught:
    launch.run(experiment, display=False)
  assert caught.value.setting == 'evaluation_environment_factory'
  assert not list(tmp_path.iterdir())


def test_environment_that_hangs_is_named(tmp_path, monkeypatch):
  monkeypatch.setattr(watchdog, 'START_SECONDS', 0.5)
  experiment = _make(
    tmp_path, evaluation_environment_factory=lambda seed: time.sleep(60)
  )
  with pytest.raises(TimeoutError, match='of evaluation_environment_factory'):
    environment_batches.find_spec(experiment)


@pytest.mark.parametrize(
  ('setting', 'value'),
  [
    ('evaluation_environment_factory', catch.Catch),
    ('evaluation_metrics', {'boards': _Falling}),
  ],
)
def test_without_evaluations_they_are_refused(tmp_path, setting, value):
  with pytest.raises(SettingError, match='evaluation_episodes is 0') as caught:
    _make(tmp_path, evaluation_episodes=0, **{setting: value})
  assert caught.value.setting == setting


def test_metric_that_fails_is_the_evaluators_failure(tmp_path):
  class Failing(_Falling):
    def value(self):
      raise ValueError('no such board')

  experiment = _make(tmp_path, evaluation_metrics={'boards': Failing})
  with pytest.raises(launch.NodeError, match='no such board') as caught:
    launch.run(experiment, display=False)
  assert caught.value.failure.node == 'evaluator'
