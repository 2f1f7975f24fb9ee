"""Runs of DQN with what Rainbow adds, where others act and learn."""

import numpy as np
import pytest

import log_files
from repertory import launch

_SMALL = {
  'hidden_sizes': (8,), 'batch_size': 4, 'min_replay_size': 40,
  'samples_per_insert': 1.0,
}  # fmt: skip
_RAINBOW = {
  'distribution': 'categorical', 'noisy': True, 'epsilon_base': 0.0,
  'epsilon_anneal_steps': 0,
}  # fmt: skip
_QUANTILES = {'distribution': 'quantile', 'num_quantiles': 5}
_MUNCHAUSEN_IQN = {
  'distribution': 'implicit_quantile', 'num_taus': 4, 'num_target_taus': 4,
  'num_policy_taus': 4, 'munchausen': True,
}  # fmt: skip


def _run(directory, config, topology, num_actors=1):
  experiment = launch.make_experiment(
    'dqn', 'tensor:catch', max_steps=200, config={**_SMALL, **config},
    directory=str(directory), num_actors=num_actors, environments_per_actor=2,
    evaluation_episodes=2, timeout_seconds=60,
  )  # fmt: skip
  status = launch.run(experiment, topology, display=False).status
  assert status.steps >= 200
  assert status.learner_steps > 5
  assert status.evaluation_return is not None
  losses = [row['loss'] for row in log_files.rows(directory, 'learner')]
  assert losses
  assert np.isfinite(losses).all()


@pytest.mark.parametrize('config', [_RAINBOW, _QUANTILES, _MUNCHAUSEN_IQN])
def test_single(tmp_path, config):
  _run(tmp_path, {**config, 'jit_compile': False}, 'single')


def test_central(tmp_path):
  config = {**_RAINBOW, 'jit_compile': False}
  _run(tmp_path, config, 'central', num_actors=2)


def test_anakin(tmp_path):
  _run(tmp_path, {**_RAINBOW, **_MUNCHAUSEN_IQN}, 'anakin')
