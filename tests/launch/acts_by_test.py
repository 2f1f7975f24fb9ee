"""Tests of policies in TensorFlow or NumPy."""

import json
import math

import pytest

from repertory import launch
from repertory.components.runtime import numpy_functions

_SMALL = {'hidden_sizes': (8,), 'jit_compile': False}
_CONFIGS = {
  'dqn': {**_SMALL, 'min_replay_size': 50},
  'ppo': {**_SMALL, 'unroll_length': 8},
  'impala': {**_SMALL, 'unroll_length': 8, 'batch_size': 2},
}


@pytest.mark.parametrize(
  ('agent', 'topology', 'deterministic', 'expected'),
  [
    ('dqn', 'single', False, 'NumPy'),
    pytest.param('ppo', 'single', False, 'NumPy', marks=pytest.mark.chaos),
    pytest.param('impala', 'single', False, 'NumPy', marks=pytest.mark.chaos),
    # By NumPy it would not be to the last bit what others are.
    ('dqn', 'single', True, 'TensorFlow'),
    # Other threads would wait for it.
    pytest.param(
      'dqn', 'distributed', False, 'TensorFlow', marks=pytest.mark.chaos
    ),
    pytest.param(
      'impala', 'sebulba', False, 'TensorFlow', marks=pytest.mark.chaos
    ),
  ],
)
def test_is_told(
  agent, topology, deterministic, expected, tmp_path, monkeypatch
):
  monkeypatch.setattr(numpy_functions, '_SHARE_OF_TIME', math.inf)
  experiment = launch.make_experiment(
    agent, 'catch', max_steps=400, directory=str(tmp_path),
    config=_CONFIGS[agent], evaluation_episodes=0,
    deterministic=deterministic,
  )  # fmt: skip
  launch.run(experiment, topology, display=False)
  lines = (tmp_path / 'logs' / 'nodes.jsonl').read_text().splitlines()
  rows = [json.loads(line) for line in lines]
  found = [row['acts_by'] for row in rows if 'acts_by' in row]
  assert found == [expected]
