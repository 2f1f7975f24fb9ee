"""Tests of checks before a run starts."""

import dm_env
import numpy as np
import pytest
from dm_env import specs as dm_env_specs

from repertory import launch
from repertory.agents import dqn
from repertory.components.config.settings import SettingError
from repertory.launch.experiments import environment_batches, preflight
from repertory.launch.platform import machine_memory

_SMALL = {'hidden_sizes': (8,), 'jit_compile': False}
_DQN = {**_SMALL, 'min_replay_size': 50, 'samples_per_insert': 8.0}
_IMPALA = {**_SMALL, 'unroll_length': 5}


def _experiment(agent, config, *, max_steps=600, **settings):
  return launch.make_experiment(
    agent, 'catch', max_steps=max_steps, config=config, **settings
  )


def _check(experiment, transport='reverb'):
  spec = environment_batches.find_spec(experiment)
  _, (option,) = preflight.describe(experiment, spec, [transport])
  return option.warning


# Experiment, expected error, and the nearest accepted one.
_CASES = {
  'min_size': (
    lambda size: _experiment('dqn', {**_DQN, 'max_replay_size': size}),
    (49, r'^min_replay_size of .* max_replay_size = 49, .* got 50', 50),
  ),
  # 32 + 8 × 32 environments × 3 items.
  'error_buffer': (
    lambda buffer: _experiment(
      'dqn', {**_DQN, 'error_buffer': buffer}, environments_per_actor=32
    ),
    (799.0, r'error_buffer .* 32 \+ 8 × 96 = 800.* got 799', 800.0),
  ),
  # 8 + 16 environments.
  'queue': (
    lambda size: _experiment(
      'impala',
      {**_IMPALA, 'max_queue_size': size},
      num_actors=8,
      environments_per_actor=2,
    ),
    (23, r'max_queue_size of .* 8 \+ 16 items.* got 23', 24),
  ),
  # (54 − 50) × 8 = 32.
  'steps': (
    lambda steps: _experiment('dqn', _DQN, max_steps=steps),
    (
      53,
      r'max_steps must .*_replay_size = 50 .* 32 / 8, and 53 .* make 53 items',
      54,
    ),
  ),
  # 2 × 19 // 5 = 7, and 8 with 20 steps: episodes may have one step each.
  'steps_of_a_queue': (
    lambda steps: _experiment(
      'impala', _IMPALA, max_steps=steps, environments_per_actor=1
    ),
    (19, r'needs batch_size = 8 items, and 19 .* make 7 items', 20),
  ),
}


@pytest.mark.parametrize('name', _CASES)
def test_refuses_and_accepts_the_nearest(name):
  make, (refused, message, accepted) = _CASES[name]
  with pytest.raises(ValueError, match=message):
    _check(make(refused))
  assert _check(make(accepted)) == ''


class _Wide(dm_env.Environment):
  """Has observations of 10,000 numbers."""

  def __init__(self, seed):
    del seed

  def observation_spec(self):
    return dm_env_specs.Array((10_000,), np.float32)

  def action_spec(self):
    return dm_env_specs.DiscreteArray(2)

  def reset(self):
    return dm_env.restart(np.zeros(10_000, np.float32))

  def step(self, action):
    return dm_env.termination(0.0, np.zeros(10_000, np.float32))


class TestMemory:
  # An observation is 40,000 bytes; the packed rest is an int32 and two floats.
  # 300 for the item, 1200 for each of its own two columns.
  ITEM = 40_000 + 12 + 300 + 2 * 1200

  def _check(self, monkeypatch, memory, transport='reverb', max_steps=10**9):
    config = dqn.DQNConfig(hidden_sizes=(1,), max_replay_size=1000, n_step=1)
    experiment = launch.Experiment(
      dqn.DQNBuilder(config), _Wide, max_steps, 'unused'
    )
    monkeypatch.setattr(machine_memory, 'total_bytes', lambda: memory)
    return _check(experiment, transport)

  def test_more_than_half_is_reported_and_more_than_all_refused(
    self, monkeypatch
  ):
    needed = 1000 * self.ITEM
    assert self._check(monkeypatch, 2 * needed) == ''
    # A run that cannot fill the table needs less.
    assert self._check(monkeypatch, 2 * needed - 2000, max_steps=999) == ''
    warning = (
      'replay may take 0.0427 GB of the 0.0427 GB of memory '
      '(max_replay_size is 1,000)'
    )
    assert self._check(monkeypatch, needed) == warning
    with pytest.raises(
      SettingError,
      match=r'max_replay_size must be lower, .* got 1,000: replay may take ',
    ):
      self._check(monkeypatch, needed - 1)

  def test_tables_in_the_process_have_copies_for_checkpoints(self, monkeypatch):
    # The observation; overhead of it and the next one; action, reward and
    # discount; a priority with its sums. A checkpoint copies the small entries.
    item = 40_000 + 2 * 144 + 12 + 32 + 12 + 8
    assert self._check(monkeypatch, 1000 * item, 'local')
    with pytest.raises(SettingError, match='must be lower'):
      self._check(monkeypatch, 1000 * item - 1, 'local')


class TestMachineMemory:
  def _write(self, root, path, text):
    path = root / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

  @pytest.mark.parametrize('place', ['', 'a/b/'])
  def test_limit_of_a_group_or_one_it_is_in(self, tmp_path, place):
    self._write(tmp_path, 'proc/self/cgroup', '0::/a/b\n')
    assert machine_memory.total_bytes(str(tmp_path)) > 10**8
    for folder in ('', 'a/', 'a/b/'):
      self._write(tmp_path, f'sys/fs/cgroup/{folder}memory.max', 'max\n')
    self._write(tmp_path, f'sys/fs/cgroup/{place}memory.max', '5000000\n')
    assert machine_memory.total_bytes(str(tmp_path)) == 5_000_000
