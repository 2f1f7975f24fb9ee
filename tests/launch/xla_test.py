"""Tests of whether XLA compiles a run, and whether NumPy acts."""

import pytest
import tensorflow as tf

from repertory import launch
from support.launch import log_files, sessions


def _decide(directory, max_steps, *, agent='dqn', config=(), **settings):
  experiment = launch.make_experiment(
    agent, 'catch', max_steps=max_steps, directory=str(directory),
    config=dict(config), **settings,
  )  # fmt: skip
  topology = 'single' if experiment.deterministic else 'distributed'
  with sessions.open_session(experiment, topology) as session:
    return session.jit_compile


# Of DQN, 16 samples an insert and batches of 32: an update every two items
# after the first 200; with 3,000 it pays.
@pytest.mark.parametrize(
  ('max_steps', 'expected'), [(6_199, False), (6_200, True)]
)
def test_follows_from_the_updates_to_come(tmp_path, max_steps, expected):
  assert _decide(tmp_path, max_steps) is expected


def test_gradient_steps_count(tmp_path):
  """Eight of them make a learner step of 256 items."""
  config = {'num_sgd_steps_per_step': 8}
  assert not _decide(tmp_path, 6_183, config=config)
  assert _decide(tmp_path, 6_200, config=config)


def test_of_a_queue_each_batch_is_an_update(tmp_path):
  """PPO's has 8 unrolls of 128 steps: 200 updates take 204,800.

  There may be twice as many unrolls, for the reset within one is no step.
  """
  num_steps = 200 * 8 * 128 // 2
  settings = {'agent': 'ppo', 'config': {'unroll_length': 128}}
  assert not _decide(tmp_path, num_steps - 600, **settings)
  assert _decide(tmp_path, num_steps, **settings)


def test_beside_an_accelerator_it_does_not_depend_on_the_length(
  tmp_path, monkeypatch
):
  devices = [tf.config.PhysicalDevice(f'{k}:0', k) for k in ('CPU', 'GPU')]
  monkeypatch.setattr(tf.config, 'get_visible_devices', lambda: devices)
  assert _decide(tmp_path, 400)
  assert not _decide(tmp_path, 400, config={'jit_compile': False})


def test_deterministic_runs_do_not_depend_on_their_length(tmp_path):
  assert _decide(tmp_path, 400, deterministic=True)


@pytest.mark.parametrize(
  ('topology', 'settings', 'is_compiled', 'acts_by'),
  [
    ('single', {}, False, ['NumPy']),
    # By NumPy it would not be to the last bit what others are.
    ('single', {'deterministic': True}, True, ['TensorFlow']),
    pytest.param('anakin', {}, True, [], marks=pytest.mark.chaos),
    # Other threads would wait for NumPy.
    pytest.param(
      'distributed', {}, False, ['TensorFlow'], marks=pytest.mark.chaos
    ),
  ],
)
def test_is_logged(tmp_path, topology, settings, is_compiled, acts_by):
  experiment = launch.make_experiment(
    'dqn', 'tensor:catch', max_steps=300, directory=str(tmp_path),
    evaluation_episodes=0, config={'hidden_sizes': (8,)}, **settings,
  )  # fmt: skip
  launch.run(experiment, topology, display=False)
  rows = log_files.nodes(tmp_path)
  (learner,) = [row for row in rows if row['node'] == 'learner']
  assert learner['jit_compile'] is is_compiled
  assert learner['updates_to_come'] == 50
  assert [row['acts_by'] for row in rows if 'acts_by' in row] == acts_by
