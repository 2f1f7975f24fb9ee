"""Tests of `launch/preflight.py`, and that refused experiments would block."""

import contextlib
import dataclasses
import re

import dm_env
import numpy as np
import pytest
from dm_env import specs as dm_env_specs

from repertory import launch
from repertory.agents import dqn, impala
from repertory.components import replay
from repertory.components.config.settings import SettingError
from repertory.components.transports import experience
from repertory.environments.registry import registry
from repertory.launch.opening import preflight, smoke_test
from repertory.launch.opening import session as session_lib
from repertory.launch.platform import machine_memory
from support.system import rare_cases

_SMALL = {'hidden_sizes': (8,), 'jit_compile': False}
_DQN = {**_SMALL, 'min_replay_size': 50, 'samples_per_insert': 8.0}
_IMPALA = {**_SMALL, 'unroll_length': 5}


def _experiment(agent, config, *, max_steps=600, **settings):
  return launch.make_experiment(
    agent, 'catch', max_steps=max_steps, config=config, **settings
  )


def _limited(**changes):
  """Makes an experiment of DQN with another table, learning from items once."""

  class Limited(dqn.DQNBuilder):
    def experience(self, spec, num_environments):
      experience = super().experience(spec, num_environments)
      return experience.with_table(**changes)

  config = dqn.DQNConfig(**{**_DQN, 'min_replay_size': 1})
  config = dataclasses.replace(config, samples_per_insert=2.0)
  return launch.Experiment(
    Limited(config),
    registry.make_factory('catch'),
    max_steps=600,
    directory='unused',
    environments_per_actor=32,
  )


def _check(experiment, transport='reverb'):
  spec = smoke_test.check(experiment)
  experience = session_lib.describe_experience(experiment, spec)
  (option,) = preflight.find_options(experiment, experience, [transport])
  preflight.check_steps(experiment, experience, [transport])
  return option.warning


# Experiment, expected error, and the nearest accepted one. Those that would
# block forever are started below all the same.
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
  'max_times_sampled': (
    lambda times: _limited(max_times_sampled=times),
    (1, r'max_times_sampled .* at least samples_per_insert = 2.* got 1', 2),
  ),
  # 1 + (32 + 32 environments × 3).
  'items_that_leave': (
    lambda size: _limited(max_times_sampled=2, max_size=size),
    (128, r'max_replay_size .* = 1 \+ 128, .* got 128', 129),
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
  # Not across episodes, an unroll may be of one step.
  'steps_of_padded_unrolls': (
    lambda steps: _experiment(
      'impala',
      {**_IMPALA, 'across_episodes': False},
      max_steps=steps,
      environments_per_actor=1,
    ),
    (7, r'batch_size = 8 items, and 7 .* make 7 items', 8),
  ),
}


@pytest.mark.parametrize('name', _CASES)
def test_refuses_and_accepts_the_nearest(name):
  make, (refused, message, accepted) = _CASES[name]
  with pytest.raises(ValueError, match=message):
    _check(make(refused))
  assert _check(make(accepted)) == ''


@pytest.mark.parametrize('agent', ['dqn', 'r2d2', 'impala', 'ppo'])
@pytest.mark.parametrize('actors', [(1, 1), (3, 5), (64, 4)])
def test_defaults_are_accepted(agent, actors):
  num_actors, environments_per_actor = actors
  experiment = _experiment(
    agent,
    {},
    max_steps=200_000,
    num_actors=num_actors,
    environments_per_actor=environments_per_actor,
  )
  assert _check(experiment) == ''


@contextlib.contextmanager
def _past_preflight(monkeypatch):
  with monkeypatch.context() as patch:
    patch.setattr(experience.Experience, 'check', lambda *arguments: None)
    patch.setattr(preflight, 'check_steps', lambda *arguments: None)
    patch.setattr(replay.TableSpec, 'check', lambda *arguments: None)
    yield


# The cases above that block forever even though the data set prefetches.
_FORCED = {
  'min_size': 20,
  'error_buffer': 8.0,
  'queue': 1,
  'max_times_sampled': 1,
  'items_that_leave': 2,
}


def _brief(experiment, directory, **settings):
  """Returns the experiment as a short run without evaluations."""
  return dataclasses.replace(
    experiment,
    max_steps=2_000,
    directory=str(directory),
    evaluation_episodes=0,
    **settings,
  )


@pytest.mark.chaos
@pytest.mark.parametrize('name', _FORCED)
def test_forced_past_it_waits_for_ever(name, tmp_path, monkeypatch):
  experiment = _brief(
    _CASES[name][0](_FORCED[name]), tmp_path, timeout_seconds=1.0
  )
  with (
    _past_preflight(monkeypatch),
    pytest.raises(launch.NodeError, match='Waited 1 seconds'),
  ):
    launch.run(experiment, display=False)


@pytest.mark.parametrize(
  'name', rare_cases.daily(_FORCED, ['min_size', 'queue'])
)
def test_forced_past_it_is_reported(name, tmp_path, monkeypatch):
  experiment = _brief(
    _CASES[name][0](_FORCED[name]),
    tmp_path,
    timeout_seconds=100.0,
    stall_seconds=1.0,
  )
  acting_waits = name in ('error_buffer', 'queue')
  blocked = 'inserts wait' if acting_waits else 'samples wait'
  with (
    _past_preflight(monkeypatch),
    pytest.raises(launch.NodeError, match=blocked),
  ):
    launch.run(experiment, display=False)
  assert 'Threads of' in (tmp_path / 'logs' / 'stall.txt').read_text()


@pytest.mark.chaos
@pytest.mark.parametrize('name', _FORCED)
def test_accepted_runs(name, tmp_path):
  make, (_, _, accepted) = _CASES[name]
  experiment = _brief(make(accepted), tmp_path, timeout_seconds=20.0)
  result = launch.run(experiment, display=False)
  assert result.status.learner_steps > 0


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


class _Screen(_Wide):
  """Observations are images."""

  def observation_spec(self):
    return dm_env_specs.BoundedArray((60, 70, 3), np.uint8, 0, 255)

  def reset(self):
    return dm_env.restart(np.zeros((60, 70, 3), np.uint8))

  def step(self, action):
    return dm_env.termination(0.0, np.zeros((60, 70, 3), np.uint8))


class TestMemory:
  def _experiment(self, max_replay_size, max_steps=10**9, builder=None):
    config = dqn.DQNConfig(
      hidden_sizes=(1,), max_replay_size=max_replay_size, n_step=1
    )
    return launch.Experiment(
      builder or dqn.DQNBuilder(config), _Wide, max_steps, 'unused'
    )

  def _check(self, monkeypatch, experiment, memory, *transport):
    monkeypatch.setattr(machine_memory, 'total_bytes', lambda: memory)
    return _check(experiment, *transport)

  # An observation is 40,000 bytes; the packed rest is an int32 and two floats.
  # 300 for the item, 1200 for each of its own two columns.
  ITEM = 40_000 + 12 + 300 + 2 * 1200

  def test_more_than_all_is_refused(self, monkeypatch):
    experiment = self._experiment(1_000_000)
    message = (
      r'^max_replay_size must be at most 936,504, .* got 1,000,000\. Replay '
      r'may take 42\.7 GB of the 40 GB .* 1,000,000 items of 42,712 bytes '
      'each, compression not counted'
    )
    with pytest.raises(ValueError, match=message):
      self._check(monkeypatch, experiment, 40 * 10**9)
    fitting = self._experiment(936_504)
    assert self._check(monkeypatch, fitting, 40 * 10**9)
    with pytest.raises(ValueError, match='Replay may take'):
      self._check(monkeypatch, self._experiment(936_505), 40 * 10**9)

  def test_more_than_half_is_reported(self, monkeypatch):
    memory = 2 * 1000 * self.ITEM
    warning = self._check(monkeypatch, self._experiment(1001), memory)
    assert re.search(
      r'up to 1,001 items .*\(max_size is max_replay_size = 1,001\)', warning
    )
    assert self._check(monkeypatch, self._experiment(1000), memory) == ''

  def test_run_that_cannot_fill_the_table_needs_less(self, monkeypatch):
    experiment = self._experiment(1_000_000, max_steps=1000)
    assert self._check(monkeypatch, experiment, 2 * 1000 * self.ITEM) == ''
    longer = self._experiment(1_000_000, max_steps=1001)
    assert self._check(monkeypatch, longer, 2 * 1000 * self.ITEM)

  def test_recordings_count(self, monkeypatch):
    recorded = dataclasses.replace(
      self._experiment(1000), environments_per_actor=8, record='unused'
    )
    # Two files of 16 MiB for each of 8 open episodes, one of ended episodes and
    # the copy that is written: 302 MB. 1,000 items are 43 MB.
    warning = self._check(monkeypatch, recorded, 680 * 10**6)
    assert '; and the recording 0.302 GB (max_size is' in warning
    assert self._check(monkeypatch, recorded, 700 * 10**6) == ''
    with pytest.raises(
      SettingError, match=r'record must fit into .*got 8 environ.* 0\.302 GB of'
    ):
      self._check(monkeypatch, recorded, 300 * 10**6)
    short = dataclasses.replace(recorded, max_steps=1100)
    assert self._check(monkeypatch, short, 220 * 10**6) == ''

  def test_images_may_compress_to_a_sixth(self, monkeypatch):
    builder = dqn.DQNBuilder(
      dqn.DQNConfig(n_step=1, max_replay_size=1000, hidden_sizes=(1,))
    )
    experiment = launch.Experiment(builder, _Screen, 10**9, 'unused')
    small = 300 + 2 * 1200 + 12
    assert 'max_size is' in self._check(
      monkeypatch, experiment, 1000 * (60 * 70 * 3 // 6 + small)
    )
    with pytest.raises(ValueError, match='even if images compress well'):
      self._check(
        monkeypatch, experiment, 1000 * (60 * 70 * 3 // 6 + small) - 1
      )

  def test_without_a_server_nothing_is_compressed(self, monkeypatch):
    builder = dqn.DQNBuilder(
      dqn.DQNConfig(n_step=1, max_replay_size=1000, hidden_sizes=(1,))
    )
    experiment = launch.Experiment(builder, _Screen, 10**9, 'unused')
    # The images of an observation and of the next one; action, reward and
    # discount; a priority with its sums. A checkpoint copies the small entries
    # and
    # the priority.
    item = 60 * 70 * 3 + 2 * 144 + 12 + 32
    needed = 1000 * (item + 12 + 8)
    assert 'including copies for checkpoints (max_size' in self._check(
      monkeypatch, experiment, needed, 'local'
    )
    assert 'uncompressed (max_size' in self._check(
      monkeypatch,
      dataclasses.replace(experiment, checkpoint_replay=False),
      1000 * item,
      'local',
    )
    with pytest.raises(
      ValueError, match=r'at most 999, .* exceeds the memory\.$'
    ):
      self._check(monkeypatch, experiment, needed - 1, 'local')

  def test_sequences_share_nothing(self):
    builder = impala.IMPALABuilder(impala.IMPALAConfig(unroll_length=2))
    experiment = self._experiment(1, builder=builder)
    spec = smoke_test.check(experiment)
    table = builder.experience(spec, 1).table
    # Three observations have their own column; the rest is packed.
    extra = table.item_bytes - 3 * 40_000 - 300 - 2 * 1200
    assert 0 < extra < 200


@pytest.mark.parametrize('part', ['make_dataset', 'make_priority_updater'])
def test_parts_of_servers_are_refused_without_one(part):
  builder = type('Own', (dqn.DQNBuilder,), {part: lambda *arguments: None})()
  experiment = dataclasses.replace(_experiment('dqn', {}), builder=builder)
  _check(experiment)
  with pytest.raises(ValueError, match=f'Own must not have a {part}'):
    _check(experiment, 'local')


class _LooksAtValues(dqn.DQNBuilder):
  """Builder of a network that reads the values of its variables."""

  def make_network(self, spec):
    network = super().make_network(spec)
    assert all(variable.numpy() is not None for variable in network.variables)
    return network


class TestNetworkMemory:
  def test_more_than_all_is_refused_before_it_is_made(self):
    experiment = _experiment('dqn', {'hidden_sizes': (300_000, 300_000)})
    with pytest.raises(SettingError, match=r'got \(300000') as caught:
      smoke_test.check(experiment)
    assert caught.value.setting == 'hidden_sizes'
    assert 'of shape [300000, 300000]' in str(caught.value)

  def test_what_there_must_be(self, monkeypatch):
    # Catch has 50 numbers and three actions, so the network 51 × 100 + 101 × 3.
    # The target has as many, and the optimizer twice as many.
    # Plus the gradients, and a copy of all but these.
    network = 4 * (51 * 100 + 101 * 3)
    needed = 2 * (4 * network + 8 + 8) + network
    config = {'hidden_sizes': (100,), 'dueling': False}
    experiment = _experiment('dqn', config)
    monkeypatch.setattr(machine_memory, 'total_bytes', lambda: needed)
    smoke_test.check(experiment)
    monkeypatch.setattr(machine_memory, 'total_bytes', lambda: needed - 1)
    with pytest.raises(ValueError, match='hidden_sizes must be lower'):
      smoke_test.check(experiment)
    # Acting needs the network only.
    monkeypatch.setattr(machine_memory, 'total_bytes', lambda: network)
    smoke_test.check(experiment, learns=False)
    monkeypatch.setattr(machine_memory, 'total_bytes', lambda: network - 1)
    with pytest.raises(ValueError, match='hidden_sizes must be lower'):
      smoke_test.check(experiment, learns=False)

  @pytest.mark.parametrize('agent', ['dqn', 'r2d2', 'impala', 'ppo'])
  def test_counts_what_the_learner_owns(self, agent, monkeypatch):
    experiment = _experiment(agent, {})
    spec = smoke_test.check(experiment)
    builder = experiment.builder
    update = builder.make_update(builder.make_network(spec), spec)
    size = sum(v.numpy().nbytes for v in update.variables)
    monkeypatch.setattr(machine_memory, 'total_bytes', lambda: 2 * size)
    in_words = re.escape(machine_memory.gigabytes(size))
    with pytest.raises(ValueError, match=f'{in_words} of variables'):
      smoke_test.check(experiment)

  def test_network_that_needs_values_is_not_counted(self, monkeypatch):
    experiment = dataclasses.replace(
      _experiment('dqn', {}), builder=_LooksAtValues()
    )
    monkeypatch.setattr(machine_memory, 'total_bytes', lambda: 1)
    smoke_test.check(experiment)

  @pytest.mark.chaos
  def test_allocation_that_fails_is_reported(self):
    # In a graph no shape may have more than 2⁶³ numbers.
    experiment = _experiment('dqn', {'hidden_sizes': (10**12, 10**12)})
    with pytest.raises(ValueError, match='must fit into the'):
      smoke_test.check(experiment)


class TestMachineMemory:
  def _write(self, root, path, text):
    path = root / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

  def test_without_groups_it_is_the_machine(self, tmp_path):
    total = machine_memory.total_bytes(str(tmp_path))
    assert total > 10**8
    self._write(tmp_path, 'proc/self/cgroup', '0::/\n')
    assert machine_memory.total_bytes(str(tmp_path)) == total
    self._write(tmp_path, 'sys/fs/cgroup/memory.max', 'max\n')
    assert machine_memory.total_bytes(str(tmp_path)) == total
    self._write(tmp_path, 'sys/fs/cgroup/memory.max', f'{10**18}\n')
    assert machine_memory.total_bytes(str(tmp_path)) == total

  @pytest.mark.parametrize('place', ['', 'a/', 'a/b/'])
  def test_limit_of_a_group_or_one_it_is_in(self, tmp_path, place):
    self._write(tmp_path, 'proc/self/cgroup', '0::/a/b\n')
    for folder in ('', 'a/', 'a/b/'):
      self._write(tmp_path, f'sys/fs/cgroup/{folder}memory.max', 'max\n')
    self._write(tmp_path, f'sys/fs/cgroup/{place}memory.max', '5000000\n')
    assert machine_memory.total_bytes(str(tmp_path)) == 5_000_000

  def test_first_version_in_a_container(self, tmp_path):
    # The path is the host's and not there.
    lines = '9:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/\n'
    self._write(tmp_path, 'proc/self/cgroup', lines)
    limit = 'sys/fs/cgroup/memory/memory.limit_in_bytes'
    self._write(tmp_path, limit, '7000000\n')
    assert machine_memory.total_bytes(str(tmp_path)) == 7_000_000
