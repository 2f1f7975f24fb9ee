"""Short runs of agents whose items, actions or losses differ."""

import sys

import numpy as np
import pytest

from repertory import launch
from repertory.agents.interface import registry as agents_registry
from repertory.environments.registry import registry
from support.environments import follow
from support.launch import log_files
from support.system import rare_cases

_SMALL = {'hidden_sizes': (8,), 'jit_compile': False}
_REPLAY = {
  **_SMALL, 'batch_size': 8, 'min_replay_size': 50, 'samples_per_insert': 2.0
}  # fmt: skip
_UNROLLS = {**_SMALL, 'unroll_length': 5, 'batch_size': 2}
_LSTM = {'core': 'lstm', 'core_size': 8}
_GTRXL = {
  'core': 'gtrxl', 'core_size': 8, 'core_heads': 2, 'core_window': 5
}  # fmt: skip
_CHAIN, _KEY = 'memory_chain:4', 'tensor:lock?key=true'
_IQN = {
  **_REPLAY, 'distribution': 'implicit_quantile', 'num_taus': 4,
  'num_target_taus': 4, 'num_policy_taus': 4, 'munchausen': True, 'noisy': True,
}  # fmt: skip

# Agent, environment and settings.
_CASES = {
  'd4pg': ('d4pg', follow.Follow, {**_REPLAY, 'prioritized': True}),
  'mpo': ('mpo', follow.Follow, {**_REPLAY, 'distribution': 'categorical'}),
  'sac': ('sac', follow.Follow, {**_REPLAY, 'num_random_steps': 100}),
  'impala': (
    'impala',
    _CHAIN,
    {**_UNROLLS, **_LSTM, 'previous_action_and_reward': True},
  ),
  'ppo': (
    'ppo',
    _CHAIN,
    {
      **_UNROLLS, 'core': 'gru', 'core_size': 8, 'num_minibatches': 2,
      'num_epochs': 2, 'normalize_observations': True,
    },
  ),
  'r2d2': (
    'r2d2',
    _CHAIN,
    {
      'core_size': 8, 'burn_in_length': 2, 'unroll_length': 6, 'batch_size': 4,
      'min_replay_size': 20, 'jit_compile': False,
    },
  ),
  'vmpo': (
    'vmpo',
    _CHAIN,
    {**_UNROLLS, **_LSTM, 'num_minibatches': 2, 'target_update_period': 2},
  ),
  'rainbow': (
    'dqn',
    'tensor:catch',
    {
      **_REPLAY, 'distribution': 'categorical', 'noisy': True,
      'epsilon_base': 0.0, 'epsilon_anneal_steps': 0,
    },
  ),
  'quantile': (
    'dqn',
    'tensor:catch',
    {**_REPLAY, 'distribution': 'quantile', 'num_quantiles': 5},
  ),
  'munchausen_iqn': ('dqn', 'tensor:catch', _IQN),
  'several_parts': ('dqn', 'tensor:lock', _REPLAY),
  'gtrxl_of_r2d2': (
    'r2d2',
    _CHAIN,
    {
      **_GTRXL, 'burn_in_length': 2, 'unroll_length': 6, 'batch_size': 4,
      'min_replay_size': 20, 'jit_compile': False,
    },
  ),
  'gtrxl_of_ppo': (
    'ppo', _CHAIN, {**_UNROLLS, **_GTRXL, 'num_minibatches': 2}
  ),
  'parts_of_unrolls': ('impala', _KEY, {**_UNROLLS, 'core': 'gru'}),
  'parts_in_memory': ('ppo', _KEY, _UNROLLS),
}  # fmt: skip


def _run(directory, case, max_steps, topology='single', environment=None):
  agent, name, config = _CASES[case]
  if environment is None:
    environment = registry.make_factory(name) if isinstance(name, str) else name
  experiment = launch.Experiment(
    agents_registry.make_builder(agent, config), environment, max_steps,
    str(directory), num_actors=2, environments_per_actor=2,
    evaluation_episodes=4, timeout_seconds=60,
  )  # fmt: skip
  status = launch.run(experiment, topology, display=False).status
  assert status.steps >= max_steps
  assert status.evaluation_return is not None
  rows = log_files.rows(directory, 'learner')
  losses = [row[name] for row in rows for name in row if name.endswith('loss')]
  assert losses
  assert np.isfinite(losses).all()
  assert all(row.get('policy_lag', 0) >= 0 for row in rows)
  return status


@pytest.mark.parametrize('case', rare_cases.daily(_CASES, ['sac']))
def test_runs_and_resumes(tmp_path, case):
  first = _run(tmp_path, case, 400)
  second = _run(tmp_path, case, 800)
  assert 'resumed from checkpoint' in second.message
  assert 10 < first.learner_steps < second.learner_steps - 10
  if case in ('d4pg', 'mpo', 'sac'):
    # (400 − 50) · 2 / 8 updates are due, but for episodes' last items.
    assert 80 <= first.learner_steps <= 88
    assert 80 <= second.learner_steps - first.learner_steps <= 105


@pytest.mark.chaos
@pytest.mark.parametrize(
  ('case', 'topology'),
  [
    *((case, 'distributed') for case in ('d4pg', 'mpo', 'impala', 'r2d2')),
    *((case, 'distributed') for case in ('sac', 'vmpo')),
    *((case, 'central') for case in ('mpo', 'sac', 'rainbow')),
    ('munchausen_iqn', 'anakin'),
    ('parts_in_memory', 'sebulba'),
    ('gtrxl_of_r2d2', 'distributed'),
    ('gtrxl_of_ppo', 'sebulba'),
  ],
)
def test_runs_in_other_topologies(tmp_path, case, topology):
  assert _run(tmp_path, case, 600, topology).learner_steps > 10


@pytest.mark.chaos
def test_threads_take_turns_more_often(tmp_path):
  before, meanwhile = sys.getswitchinterval(), []

  def make_environment(seed):
    meanwhile.append(sys.getswitchinterval())
    return follow.Follow(seed)

  _run(tmp_path, 'sac', 400, 'distributed', make_environment)
  assert meanwhile[-1] < before
  assert sys.getswitchinterval() == before


def test_impala_learns_from_each_step_once(tmp_path):
  # Unrolls overlap by one observation and by no step: 4 slots of 300 moments,
  # of which each unroll takes 5, and each learner step 2 unrolls.
  status = _run(tmp_path, 'impala', 1_000)
  inserts = log_files.rows(tmp_path, 'replay')[-1]['inserts']
  # An episode of 5 steps takes a sixth moment, in which it only starts anew.
  moments = status.steps * 6 / 5
  assert abs(inserts - moments / 5) <= 8
  assert abs(status.learner_steps - inserts / 2) <= 2


def test_agent_that_does_not_fit_names_those_that_do(tmp_path):
  experiment = launch.make_experiment(
    'td3', _KEY, max_steps=100, directory=str(tmp_path / 'run')
  )
  with pytest.raises(
    ValueError,
    match=r"'td3' does not fit.*actions\['dials'\] must be a non-empty array"
    r' of floats.*that fit, with their defaults: impala, ppo, vmpo\.',
  ):
    launch.run(experiment, display=False)
  assert not (tmp_path / 'run').exists()
