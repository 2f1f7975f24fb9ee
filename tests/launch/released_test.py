"""Tests of released policies, and of commands with `--from_zoo`."""

import os
import pathlib
import re

import numpy as np
import pytest

from repertory import launch
from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError
from repertory.launch.experiments import directories, naming
from repertory.launch.sweeps import zoo as zoo_lib
from repertory.launch.trained import released
from support.agents import trained_agents

_NAME, _FOLDERS = 'dqn/catch:6x5', 'dqn/catch-6x5'
_MAX_BYTES = 20_000_000


@pytest.fixture(name='make_run')
def _make_run(monkeypatch, tmp_path):
  """Makes runs of an agent on an environment, untrained, by seed."""
  monkeypatch.chdir(tmp_path)

  def make(seed):
    experiment = launch.make_experiment(
      'dqn', 'catch:6x5', max_steps=1, directory=f'runs/{seed}', seed=seed,
      config={'hidden_sizes': (6,), 'jit_compile': False},
    )  # fmt: skip
    trained_agents.write_checkpoint(experiment)
    return experiment.directory

  return make


@pytest.fixture(name='run')
def _run(make_run):
  """Returns the directory of a run whose policy is in the folder `zoo`."""
  directory = make_run(0)
  released.release('zoo', directory, {'episode_return': -0.5, 'steps': 60})
  return directory


def test_only_a_better_policy_replaces(make_run):
  released.release('zoo', 'without', {'episode_return': 9.0, 'steps': 60})
  kept = []
  results = (-2.0, 60), (-2.0, 60), (1.5, 60), (1.0, 60), (9.0, 59)
  for seed, (value, steps) in enumerate(results):
    evaluation = {'episode_return': value, 'steps': steps}
    released.release('zoo', make_run(seed), evaluation)
    (folder,) = pathlib.Path('zoo', _FOLDERS, 'checkpoints').iterdir()
    assert {file.name for file in folder.iterdir()} == {
      'checksums.json', 'policy.json', 'policy.npz'
    }  # fmt: skip
    saved = checkpointing.Checkpointer(str(folder.parent)).load_policy()
    assert saved is not None
    kept.append((saved.state['experiment']['seed'], saved.state['evaluation']))
  assert [seed for seed, _ in kept] == [0, 0, 2, 2, 2]
  assert kept[-1][1] == {'episode_return': 1.5, 'steps': 60}


def test_is_found_by_name(run, run_command):
  policy = launch.load_policy(launch.find_in_zoo(_NAME, 'zoo'))
  observations = np.random.default_rng(0).normal(size=[40, 6, 5])
  expected = launch.load_policy(run).act(observations)
  assert len(set(expected.tolist())) > 1
  np.testing.assert_array_equal(policy.act(observations), expected)

  flags = f'--from_zoo={_NAME}', '--zoo=zoo'
  code, out, err = run_command('evaluate', *flags, '--episodes=2', '--video')
  assert code == 0, err
  assert re.match(r'dqn on catch:6x5, learner step 7, 2 episodes\nmean ', out)
  assert out.endswith('videos     videos\n')
  assert len(os.listdir('videos')) == 2
  code, out, err = run_command('record', 'data', *flags, '--episodes=1')
  assert code == 0, err
  assert out.endswith('written to data\n')
  assert os.listdir(f'zoo/{_FOLDERS}') == ['checkpoints']


@pytest.mark.parametrize(
  ('name', 'hint'),
  [
    ('dqn/catch:6x6', "Did you mean 'dqn/catch-6x5'?"),
    ('dqn', 'Policies there: dqn/catch-6x5.'),
    ('', 'Policies there: dqn/catch-6x5.'),
    ('ppo/gym:LunarLander-v3', 'Policies there: dqn/catch-6x5.'),
  ],
)
def test_unknown_names(run, name, hint):
  message = f'policy must be <agent>/<environment> .* zoo, got {name!r}. '
  with pytest.raises(SettingError, match=message + re.escape(hint)):
    launch.find_in_zoo(name, 'zoo')


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (['evaluate'], 'Arguments must be DIRECTORY, where .* got none'),
    (['evaluate', 'runs/0', '--from_zoo=a/b'], 'got a/b runs/0'),
    (
      ['export', '--directory=runs/0', '--from_zoo=a/b', 'x'],
      'got a/b runs/0 x',
    ),
    (['evaluate', '--from_zoo=a/b', '--best'], '--best must be left out'),
    (['evaluate', 'runs/0', '--zoo=zoo'], '--zoo requires --from_zoo'),
    (['evaluate', '--from_zoo=a/b', '--zoo=zoo'], '--from_zoo must be <agent>'),
    (['evaluate', '--from_zoo=a/b', '--zoo=z'], "--zoo must be a .* got 'z'"),
  ],
)
def test_wrong_arguments(run, run_command, arguments, message):
  code, out, err = run_command(*arguments)
  assert (code, out) == (2, '')
  assert re.search(message, err)


def test_flipped_byte(run, run_command):
  name = 'policy.npz'
  path = pathlib.Path('zoo', _FOLDERS, 'checkpoints', '00000001', name)
  contents = bytearray(path.read_bytes())
  contents[len(contents) // 2] ^= 1
  path.write_bytes(contents)
  code, out, err = run_command('evaluate', f'--from_zoo={_NAME}', '--zoo=zoo')
  assert (code, out) == (2, '')
  assert f'{path.parent} cannot be read: {name} was damaged' in err


def test_only_acts(run, run_command):
  path = f'zoo/{_FOLDERS}'
  for flags in (
    [f'--directory={path}'],
    ['--directory=new', f'--initial_from={path}'],
  ):
    code, _, err = run_command('train', '--env=catch:6x5', *flags)
    assert code == 2
    assert '00000001 must have the state of a run, got only a policy' in err


def test_names_of_cells_have_different_folders():
  cells = zoo_lib.cells(['*'], ['*'])
  paths = {naming.folders(cell.agent, cell.environment) for cell in cells}
  assert len(paths) == len(cells)


def test_policies_of_the_source_tree():
  root = pathlib.Path(released.__file__).parents[2] / 'docs/zoo/policies'
  folders = [path.parent for path in root.glob('*/*/checkpoints')]
  assert folders
  for folder in folders:
    saved = directories.checkpoints_in(str(folder)).load_policy()
    assert saved is not None
    identity = saved.state['experiment']
    name = f'{identity["agent"]}/{identity["environment"]}'
    assert launch.find_in_zoo(name) == str(folder)
  files = [path for path in root.rglob('checkpoints/**/*') if path.is_file()]
  assert len(files) == 3 * len(folders)
  assert sum(path.stat().st_size for path in files) <= _MAX_BYTES
