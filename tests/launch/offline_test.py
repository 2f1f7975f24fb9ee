"""Tests of recording, and of the topology `offline`."""

import csv
import dataclasses
import os
import shutil
import types

import dm_env
import numpy as np
import pytest

from repertory import launch
from repertory.agents import dqn
from repertory.components import offline, specs
from repertory.components.checkpoints import checkpointing
from repertory.components.config import settings
from repertory.components.transports import experience
from repertory.environments.registry import registry
from repertory.environments.wrappers import previous_action
from repertory.launch.cli import commands
from repertory.launch.experiments import environment_batches
from repertory.launch.nodes import offline as runs_offline
from repertory.launch.nodes import one_thread
from repertory.launch.topologies import offline as topology
from support.replay import recorded_episodes

_CONFIG = {
  'hidden_sizes': (8,), 'min_replay_size': 50, 'batch_size': 8,
  'jit_compile': False,
}  # fmt: skip


def _make_experiment(directory, agent='dqn', **changes):
  config = changes.pop('config', _CONFIG)
  chosen = {'max_steps': 40, 'evaluation_episodes': 2, **changes}
  return launch.make_experiment(
    agent, 'catch', config=config, directory=str(directory), **chosen
  )


def _run(experiment, data, name='offline'):
  if name == 'offline':
    name = topology.Offline(data=(str(data),))
  return launch.run(experiment, name, display=False)


@pytest.fixture(scope='module')
def data(tmp_path_factory):
  directory = tmp_path_factory.mktemp('data') / 'catch'
  recorded_episodes.play_randomly(directory, 'catch', 1_000)
  return str(directory)


@pytest.fixture(scope='module')
def single(tmp_path_factory):
  """Folder of a recorded run of `single`."""
  folder = tmp_path_factory.mktemp('single')
  experiment = _make_experiment(
    folder / 'run', max_steps=203, record=str(folder / 'data')
  )
  result = _run(experiment, None, 'single')
  return folder, result


@pytest.fixture(scope='module')
def straight(tmp_path_factory, data):
  """Folder and result of an uninterrupted run of `offline`."""
  directory = tmp_path_factory.mktemp('straight') / 'run'
  experiment = _make_experiment(directory, deterministic=True)
  return directory, _run(experiment, data)


class TestOffline:
  def test_steps_are_learner_steps(self, straight, data):
    directory, result = straight
    status = result.status
    assert (status.steps, status.learner_steps, status.episodes) == (40, 40, 0)
    (table,) = status.tables
    assert table.inserts == sum(offline.open_data(data).lengths)
    with open(directory / 'logs' / 'evaluator.csv') as file:
      rows = list(csv.DictReader(file))
    # Every tenth of the run.
    assert [int(row['steps']) for row in rows] == list(range(4, 41, 4))
    assert all(row['steps'] == row['learner_steps'] for row in rows)

  def test_its_policy_explores_as_late_in_a_run(self, straight):
    greedy, exploring = (
      launch.load_policy(str(straight[0]), explore=explore)
      for explore in (False, True)
    )
    random = np.random.default_rng(0)
    equal = 0
    for _ in range(50):
      observation = random.random(greedy.spec.observations.shape, np.float32)
      equal += greedy.act(observation) == exploring.act(observation)
    # One environment explores with 0.4^4.5 = 0.016; at first it would with 1.
    assert equal >= 45

  def test_a_run_resumes_exactly(self, tmp_path, straight, data):
    halves = [
      _run(
        _make_experiment(
          tmp_path, deterministic=True, max_steps=max_steps,
          evaluation_episodes=0,
        ),
        data,
      )
      for max_steps in (17, 40)
    ]  # fmt: skip
    assert halves[0].status.steps == 17
    assert halves[1].variables_sha256 == straight[1].variables_sha256
    assert halves[0].variables_sha256 != straight[1].variables_sha256

  def test_it_resumes_with_the_same_data_only(self, tmp_path, straight, data):
    shutil.copytree(straight[0], tmp_path / 'run')
    experiment = _make_experiment(
      tmp_path / 'run', deterministic=True, max_steps=42
    )
    recorded_episodes.play_randomly(data, 'catch', 20, seed=7)
    try:
      with pytest.raises(launch.NodeError, match='have changed'):
        _run(experiment, data)
    finally:
      os.remove(os.path.join(data, f'steps_{7:016x}_000000.npz'))

  def test_a_run_resumes_neither_from_nor_to_acting(
    self, straight, single, data
  ):
    learns = _make_experiment(straight[0], max_steps=300, deterministic=True)
    acts = _make_experiment(single[0] / 'run', max_steps=300)
    for experiment, name in ((acts, 'offline'), (learns, 'single')):
      with pytest.raises(checkpointing.CheckpointError, match='learner steps'):
        _run(experiment, data, name)

  @pytest.mark.parametrize('name', ['offline', 'single'])
  def test_each_step_that_is_read_is_progress(
    self, tmp_path, data, monkeypatch, name
  ):
    monkeypatch.setattr(runs_offline, '_REPORT_SECONDS', 0)
    show, seen = one_thread.OneThread._show_start, []

    def note(self):
      show(self)
      (start,) = self._coordinator.status().starts[:1]
      seen.append((self._progress(), start.doing))

    monkeypatch.setattr(one_thread.OneThread, '_show_start', note)
    single = {'demonstrations': (data,), 'demonstration_fraction': 0.5}
    settings = {} if name == 'offline' else {**single, 'max_steps': 99}
    _run(_make_experiment(tmp_path, **settings), data, name)
    reading = [one for one in seen if 'steps so far' in one[1]]
    # All episodes, of ten observations, are cut in parallel.
    assert len(reading) >= 9
    assert len({progress for progress, _ in seen}) == len(seen)

  def test_agents_of_data_alone(self, tmp_path, data):
    experiment = _make_experiment(tmp_path / 'run', max_steps=3)
    builder = _OfData(experiment.builder.config)
    experiment = dataclasses.replace(experiment, builder=builder)
    with pytest.raises(settings.SettingError, match="must be 'offline'"):
      _run(experiment, None, 'single')
    status = _run(experiment, data).status
    assert status.learner_steps == 3
    # It needs no rate limit, and no size.
    assert status.tables[0].size > 500


class _OfData(dqn.DQNBuilder):
  """Builder of an agent that learns offline only."""

  def experience(self, spec, num_environments):
    items = super().experience(spec, num_environments).items
    return experience.Experience.offline(items, items.signature(spec), 8)


class TestRefusals:
  def test_agents_that_do_not_replay(self, tmp_path, data):
    experiment = _make_experiment(tmp_path / 'run', 'impala', config={})
    with pytest.raises(settings.SettingError, match='learns from each item on'):
      _run(experiment, data)
    assert not (tmp_path / 'run').exists()

  @pytest.mark.parametrize(
    ('flags', 'message'),
    [
      ([], '--data must name one or more folders'),
      (['--data=DATA,nowhere'], 'nowhere must be a folder; got nothing'),
      (['--data=DATA', '--env=memory_chain'], "must have 'observation' like"),
      (['--data=DATA', '--record=more'], '--record must be left out'),
      (['--data=DATA', '--num_actors=2'], '--num_actors must be left out'),
      (['--data=DATA', '--topology=single'], '--data must be left out'),
    ],
  )
  def test_what_is_typed_wrong(self, tmp_path, data, capsys, flags, message):
    flags = [flag.replace('DATA', data) for flag in flags]
    run = tmp_path / 'run'
    code = commands.run(
      [
        'train',
        '--env=catch',
        '--topology=offline',
        f'--directory={run}',
        *flags,
      ]
    )
    assert code == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert not run.exists()

  @pytest.mark.parametrize('flag', ['--data', '--demonstrations'])
  def test_damaged_content_is_reported_in_a_line(
    self, tmp_path, data, capsys, flag
  ):
    damaged = tmp_path / 'damaged'
    shutil.copytree(data, damaged)
    (path,) = damaged.glob('*.npz')
    content = bytearray(path.read_bytes())
    content[content.index(b'observation.npy') + 300] ^= 1
    path.write_bytes(content)
    arguments = [
      'train', '--env=catch', '--steps=300', f'{flag}={damaged}',
      f'--directory={tmp_path / "run"}',
    ]  # fmt: skip
    if flag == '--data':
      arguments.append('--topology=offline')
    else:
      arguments.append('--demonstration_fraction=0.5')
    code = commands.run(arguments)
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert code == 2
    assert message.startswith(f'repertory: {flag} cannot be learned from: ')
    assert message.endswith("Raised in node 'learner'.")

  @pytest.mark.parametrize('name', ['offline', 'single'])
  def test_returns_outside_the_range_of_a_critic(self, tmp_path, data, name):
    demonstrations = {}
    if name == 'single':
      demonstrations = {
        'demonstrations': (data,), 'demonstration_fraction': 0.5
      }  # fmt: skip
    # A ball is caught or missed in the last of nine steps.
    expected = (
      'discounted return of the data, whose returns range from -1 to 1; got'
    )
    for vmin, vmax, message in (
      (-0.99, 2.0, f'vmin must be at most the least {expected} -0.99'),
      (-2.0, 0.99, f'vmax must be at least the largest {expected} 0.99'),
    ):
      experiment = _make_experiment(
        tmp_path / 'run', max_steps=99, **demonstrations,
        config={
          **_CONFIG, 'distribution': 'categorical', 'vmin': vmin, 'vmax': vmax
        },
      )  # fmt: skip
      with pytest.raises(settings.SettingError, match=message):
        _run(experiment, data, name)
    assert not (tmp_path / 'run').exists()

  def test_a_recording_among_the_demonstrations(self, tmp_path, data):
    experiment = _make_experiment(
      tmp_path / 'run', max_steps=99, record=f'{data}/.',
      demonstrations=(data,), demonstration_fraction=0.5,
    )  # fmt: skip
    with pytest.raises(settings.SettingError, match='record must differ from'):
      _run(experiment, None, 'single')
    assert not (tmp_path / 'run').exists()

  def test_recordings_of_something_else(self, tmp_path, data):
    experiment = _make_experiment(tmp_path / 'run', record=data, max_steps=99)
    with pytest.raises(settings.SettingError, match="agent is 'random' there"):
      _run(experiment, None, 'single')
    assert not (tmp_path / 'run').exists()

  def test_a_recording_that_cannot_be_written(self, tmp_path):
    # Nobody may make folders in /proc, not even the superuser.
    experiment = _make_experiment(
      tmp_path / 'run', record='/proc/a/b', max_steps=99
    )
    message = r'^record must be writable, got /proc/a/b: .*/proc'
    with pytest.raises(settings.SettingError, match=message):
      _run(experiment, None, 'single')
    assert not (tmp_path / 'run').exists()


class TestRecord:
  def test_all_experience_is_recorded_once(self, single):
    folder, result = single
    found = offline.open_data(str(folder / 'data'))
    assert found.manifest.agent == 'dqn'
    assert found.lengths.sum() == result.status.steps
    # Catch: every episode has nine steps, and the last one is open.
    assert found.lengths.tolist().count(9) == result.status.episodes
    spec = launch.load_policy(str(folder / 'run')).spec
    rewards = np.concatenate([steps.reward for steps in found.read(spec)])
    assert set(rewards.tolist()) <= {-1, 0, 1}
    assert (rewards != 0).sum() == result.status.episodes

  def test_episodes_of_a_policy(self, single, tmp_path, capsys):
    folder, _ = single
    output = str(tmp_path / 'episodes')
    returns = launch.record(str(folder / 'run'), 13, output, explore=True)
    found = offline.open_data(output)
    spec = launch.load_policy(str(folder / 'run')).spec
    (steps,) = found.read(spec)
    assert found.lengths.tolist() == [9] * 13
    starts = steps.starts
    sums = np.add.reduceat(steps.reward, starts)
    assert sorted(sums.tolist()) == sorted(returns)
    assert (steps.step_type[starts] == int(dm_env.StepType.FIRST)).all()
    arguments = ['record', f'--directory={folder / "run"}', '--episodes=2']
    assert commands.run([*arguments, output]) == 2
    assert 'is not empty' in capsys.readouterr().err
    assert commands.run([*arguments, '/proc/a/b']) == 2
    expected = 'repertory: OUTPUT must be writable, got /proc/a/b: '
    assert capsys.readouterr().err.startswith(expected)
    assert commands.run([*arguments, f'{output}_2']) == 0
    assert '2 episodes of mean return' in capsys.readouterr().out


def test_previous_actions_are_shown_as_a_batch_shows_them(tmp_path, data):
  factory = registry.make_factory('catch')
  spec = specs.make_environment_spec(
    environment_batches.EnvironmentSettings(factory, False).make_environments(
      [0]
    )
  )
  found = offline.open_data(data)
  session = types.SimpleNamespace(
    experiment=types.SimpleNamespace(
      builder=types.SimpleNamespace(observes_previous_action_and_reward=True)
    ),
    spec=spec._replace(observations={'observation': spec.observations}),
  )
  (shown,) = runs_offline.read(session, [found])
  (plain,) = found.read(spec)
  # The same actions again, in environments of the same seeds.
  batch = environment_batches.EnvironmentSettings(
    factory, True
  ).make_environments([0])
  assert isinstance(batch, previous_action.PreviousActionAndReward)
  timestep = batch.reset()
  for t in range(300):
    for name, value in timestep.observation.items():
      np.testing.assert_array_equal(shown.observation[name][t], value[0], name)
    timestep = batch.step(plain.action[t : t + 1])
