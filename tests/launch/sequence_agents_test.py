"""The agents that learn from sequences, run in each topology for a while."""

import csv
import pathlib

import pytest

from repertory import launch

_AGENTS = {
  'impala': {'core': 'lstm', 'core_size': 8, 'unroll_length': 5,
             'batch_size': 2, 'previous_action_and_reward': True,
             'jit_compile': False},
  'ppo': {'core': 'gru', 'core_size': 8, 'hidden_sizes': (8,),
          'unroll_length': 5, 'num_minibatches': 2, 'num_epochs': 2,
          'normalize_observations': True, 'jit_compile': False},
  'r2d2': {'core_size': 8, 'burn_in_length': 2, 'unroll_length': 6,
           'batch_size': 4, 'min_replay_size': 20, 'jit_compile': False},
  'vmpo': {'core': 'lstm', 'core_size': 8, 'hidden_sizes': (8,),
           'unroll_length': 5, 'num_minibatches': 2,
           'target_update_period': 2, 'jit_compile': False},
}  # fmt: skip


def _run(directory, agent, max_steps, topology='single', **settings):
  experiment = launch.make_experiment(
    agent,
    'memory_chain:4',
    max_steps=max_steps,
    config=_AGENTS[agent],
    directory=str(directory),
    evaluation_episodes=4,
    **{'environments_per_actor': 3, **settings},
  )
  return launch.run(experiment, topology, display=False).status


def _rows(directory, log):
  with pathlib.Path(directory, 'logs', f'{log}.csv').open() as file:
    return list(csv.DictReader(file))


@pytest.mark.chaos
@pytest.mark.parametrize('agent', _AGENTS)
def test_runs_and_resumes(tmp_path, agent):
  first = _run(tmp_path, agent, 600)
  assert first.steps >= 600
  assert first.learner_steps > 10
  second = _run(tmp_path, agent, 1_200)
  assert second.steps >= 1_200
  assert second.learner_steps > first.learner_steps + 10
  lags = [float(row['policy_lag']) for row in _rows(tmp_path, 'learner')]
  assert all(lag >= 0 for lag in lags)
  assert _rows(tmp_path, 'evaluator')


def test_impala_learns_from_each_step_once(tmp_path):
  # Unrolls overlap by one observation and by no step: 3 slots of 400 moments,
  # of which each unroll takes 5, and each learner step 2 unrolls.
  status = _run(tmp_path, 'impala', 1_000)
  rows = _rows(tmp_path, 'replay')
  inserts = float(rows[-1]['inserts'])
  # An episode of 5 steps takes a sixth moment, in which it only starts anew.
  moments = status.steps * 6 / 5
  assert abs(inserts - moments / 5) <= 6
  assert abs(status.learner_steps - inserts / 2) <= 2


@pytest.mark.chaos
@pytest.mark.parametrize('agent', ['impala', 'r2d2', 'vmpo'])
def test_runs_distributed(tmp_path, agent):
  status = _run(
    tmp_path, agent, 600, 'distributed', num_actors=2, environments_per_actor=2
  )
  assert status.steps >= 600
  rows = _rows(tmp_path, 'learner')
  assert float(rows[-1]['learner_steps']) > 10
  assert float(rows[-1]['policy_lag']) >= 0
