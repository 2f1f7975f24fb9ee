"""Runs of agents whose actions have several parts, in some topologies."""

import pytest

from repertory import launch
from support.launch import log_files

_SMALL = {'hidden_sizes': (8,), 'jit_compile': False}
_UNROLLS = {**_SMALL, 'unroll_length': 5, 'batch_size': 2}
_REPLAY = {
  **_SMALL,
  'batch_size': 4,
  'min_replay_size': 40,
  'samples_per_insert': 1.0,
}
_LOCK, _WITH_KEY = 'tensor:lock', 'tensor:lock?key=true'


def _run(directory, agent, environment, config, max_steps, topology):
  experiment = launch.make_experiment(
    agent,
    environment,
    max_steps=max_steps,
    config=config,
    directory=str(directory),
    num_actors=2,
    environments_per_actor=2,
    evaluation_episodes=4,
    timeout_seconds=60,
  )
  return launch.run(experiment, topology, display=False).status


@pytest.mark.chaos
@pytest.mark.parametrize(
  ('agent', 'environment', 'config'),
  [
    ('impala', _WITH_KEY, {**_UNROLLS, 'core': 'gru'}),
    ('dqn', _LOCK, _REPLAY),
  ],
)
def test_runs_and_resumes(tmp_path, agent, environment, config):
  first = _run(tmp_path, agent, environment, config, 200, 'single')
  assert 200 <= first.steps < 210
  assert first.learner_steps > 5
  second = _run(tmp_path, agent, environment, config, 400, 'single')
  assert 'resumed from checkpoint' in second.message
  assert second.learner_steps > first.learner_steps + 5
  evaluations = log_files.rows(tmp_path, 'evaluator')
  assert all(-8 <= row['episode_return'] <= 8 for row in evaluations)
  assert second.evaluation_return is not None


@pytest.mark.chaos
def test_threads_share_nests(tmp_path):
  status = _run(tmp_path, 'ppo', _WITH_KEY, _UNROLLS, 300, 'sebulba')
  (table,) = status.tables
  assert status.learner_steps == table.inserts // 2 > 5


def test_agent_that_does_not_fit_names_those_that_do(tmp_path):
  with pytest.raises(
    ValueError,
    match=r"'td3' does not fit.*actions\['dials'\] must be a non-empty array"
    r' of floats.*that fit, with their defaults: impala, ppo, vmpo\.',
  ):
    _run(tmp_path / 'run', 'td3', _WITH_KEY, {}, 100, 'single')
  assert not (tmp_path / 'run').exists()
