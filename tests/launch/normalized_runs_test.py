"""Runs of agents with normalized observations and rewards."""

import numpy as np
import pytest

from repertory import launch
from repertory.launch.experiments import directories
from support.launch import log_files
from support.system import rare_cases

_BOTH = {
  'normalize_observations': True, 'normalize_rewards': True,
  'hidden_sizes': (8,), 'jit_compile': False,
}  # fmt: skip


def _run(directory, agent, environment, max_steps, config, topology='single'):
  experiment = launch.make_experiment(
    agent,
    environment,
    max_steps=max_steps,
    directory=str(directory),
    config={**_BOTH, **config},
    evaluation_episodes=3,
  )
  return launch.run(experiment, topology, display=False).status


@pytest.mark.parametrize(
  'topology', rare_cases.daily(['single', 'distributed'], ['single'])
)
def test_statistics_are_of_what_was_learned_from(tmp_path, topology):
  config = {'batch_size': 16, 'min_replay_size': 50, 'samples_per_insert': 8.0}
  for max_steps in (300, 600):  # The second run resumes the first.
    status = _run(tmp_path, 'dqn', 'catch', max_steps, config, topology)
    arrays = directories.load_checkpoint(str(tmp_path)).arrays
    # Items of evaluations are not among them.
    of_policy = [v for k, v in arrays.items() if k.startswith('policy/')]
    count, mean, variance = of_policy[-3:]
    assert count == 16 * status.learner_steps > 0
    names = [name for name in arrays if name.startswith('return_scale/')]
    assert arrays[names[0]] == count
    assert len(names) == 3
    # Two pixels of 50 are 1.
    np.testing.assert_allclose(mean.sum(), 2, rtol=0.1)
    np.testing.assert_allclose(variance, mean * (1 - mean), atol=1e-6)
  normalizer = launch.trained.loading.read(str(tmp_path)).network.normalizer
  for variable, value in zip(normalizer.variables, of_policy[-3:]):
    np.testing.assert_array_equal(variable, value)


@pytest.mark.parametrize(
  'topology', rare_cases.daily(['single', 'anakin'], ['single'])
)
def test_actors_use_the_statistics_of_the_learner(tmp_path, topology):
  config = {
    'unroll_length': 8, 'learning_rate': 0.03, 'num_epochs': 1,
    'num_minibatches': 1,
  }  # fmt: skip
  _run(tmp_path, 'ppo', 'tensor:cartpole', 1_000, config, topology)
  rows = log_files.rows(tmp_path, 'learner')
  assert len(rows) > 1
  # The policy that acted is the one before the only gradient step.
  divergences = [row['approximate_kl'] for row in rows[1:]]
  np.testing.assert_allclose(divergences, 0, atol=1e-5)
