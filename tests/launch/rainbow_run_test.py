"""Runs of DQN with what Rainbow adds, where others act and learn."""

import numpy as np
import pytest

from repertory import launch
from support.launch import log_files

_SMALL = {
  'hidden_sizes': (8,), 'batch_size': 4, 'min_replay_size': 40,
  'samples_per_insert': 1.0,
}  # fmt: skip
_CONFIGS = {
  'rainbow': {
    'distribution': 'categorical', 'noisy': True, 'epsilon_base': 0.0,
    'epsilon_anneal_steps': 0,
  },
  'quantile': {'distribution': 'quantile', 'num_quantiles': 5},
  'noisy munchausen_iqn': {
    'distribution': 'implicit_quantile', 'num_taus': 4, 'num_target_taus': 4,
    'num_policy_taus': 4, 'munchausen': True, 'noisy': True,
  },
}  # fmt: skip
_CASES = (
  ('rainbow', 'single'),
  ('quantile', 'single'),
  ('noisy munchausen_iqn', 'single'),
  ('rainbow', 'central'),
  ('noisy munchausen_iqn', 'anakin'),
)


@pytest.mark.chaos
@pytest.mark.parametrize('case', _CASES, ids=str)
def test_run(tmp_path, case):
  name, topology = case
  config = {**_SMALL, **_CONFIGS[name], 'jit_compile': topology == 'anakin'}
  experiment = launch.make_experiment(
    'dqn', 'tensor:catch', max_steps=200, config=config,
    directory=str(tmp_path), num_actors=2 if topology == 'central' else 1,
    environments_per_actor=2, evaluation_episodes=2, timeout_seconds=60,
  )  # fmt: skip
  status = launch.run(experiment, topology, display=False).status
  assert status.steps >= 200
  assert status.learner_steps > 5
  assert status.evaluation_return is not None
  losses = [row['loss'] for row in log_files.rows(tmp_path, 'learner')]
  assert losses
  assert np.isfinite(losses).all()
