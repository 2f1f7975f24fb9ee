"""Tests of policies in TensorFlow or NumPy."""

import json

import pytest

from repertory import launch

_CONFIG = {'hidden_sizes': (8,), 'jit_compile': False, 'min_replay_size': 50}


@pytest.mark.parametrize(
  ('topology', 'deterministic', 'expected'),
  [
    ('single', False, 'NumPy'),
    # By NumPy it would not be to the last bit what others are.
    ('single', True, 'TensorFlow'),
    # Other threads would wait for it.
    pytest.param('distributed', False, 'TensorFlow', marks=pytest.mark.chaos),
  ],
)
def test_is_logged(topology, deterministic, expected, tmp_path):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=400, directory=str(tmp_path),
    config=_CONFIG, evaluation_episodes=0,
    deterministic=deterministic,
  )  # fmt: skip
  launch.run(experiment, topology, display=False)
  lines = (tmp_path / 'logs' / 'nodes.jsonl').read_text().splitlines()
  rows = [json.loads(line) for line in lines]
  found = [row['acts_by'] for row in rows if 'acts_by' in row]
  assert found == [expected]
