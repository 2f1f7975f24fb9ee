"""Tests of runs whose settings follow schedules."""

import json

import numpy as np
import pytest

from repertory import launch
from repertory.launch.experiments import directories
from support.launch import log_files

_PPO = {'hidden_sizes': (8,), 'unroll_length': 2, 'jit_compile': False}


def _run(directory, topology, max_steps, **config):
  """Returns learner steps, saved numbers, log rows and identity of a run."""
  experiment = launch.make_experiment(
    'ppo',
    'tensor:catch:9x5',
    max_steps=max_steps,
    config={**_PPO, **config},
    environments_per_actor=4,
    evaluation_episodes=0,
    directory=str(directory),
  )
  status = launch.run(experiment, topology, display=False).status
  checkpoint = directories.load_checkpoint(str(directory))
  numbers = {
    name.split('/')[-1]: float(array)
    for name, array in checkpoint.arrays.items()
    if name.startswith('other/') and np.ndim(array) == 0
  }
  identity = json.loads(json.dumps(checkpoint.state['experiment']))
  rows = log_files.rows(directory, 'learner')
  return status.learner_steps, numbers, rows, identity


@pytest.mark.parametrize('topology', ['single', 'anakin'])
def test_a_resumed_run_continues(tmp_path, topology):
  config = {
    'learning_rate': 'linear(0.01,0,steps=20)',
    # 160 steps of environments are ten batches of 8 unrolls of two steps.
    'entropy_cost': 'linear(0.1,0.2)',
  }
  before, found, rows, identity = _run(tmp_path, topology, 80, **config)
  assert 5 <= before <= 6  # Resets are steps of unrolls, too.
  assert found['schedule_calls:0'] == before
  rate = 0.01 * (1 - (before - 1) / 20)
  assert found['learning_rate:0'] == pytest.approx(rate)
  assert found['entropy_cost:0'] == pytest.approx(0.1 + 0.1 * (before - 1) / 5)
  # Rows have means of a second.
  assert all(rate <= row['learning_rate'] <= 0.01 for row in rows)
  assert identity['config.learning_rate'] == config['learning_rate']
  after, found, rows, _ = _run(tmp_path, topology, 160, **config)
  assert 10 <= after <= 11
  assert found['learning_rate:0'] == pytest.approx(
    0.01 * (1 - (after - 1) / 20)
  )
  assert found['entropy_cost:0'] == pytest.approx(0.1 + 0.1 * (after - 1) / 10)
  assert rows[-1]['learning_rate'] < rate
  with pytest.raises(ValueError, match='learning_rate'):
    _run(tmp_path, topology, 160, learning_rate=0.01)
