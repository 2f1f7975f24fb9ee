"""Tests of `repertory zoo`."""

import csv
import json
import os

import pytest

from repertory import launch
from repertory.agents.dqn import tuned as dqn_tuned
from repertory.agents.interface import tuned_presets
from repertory.agents.ppo import tuned as ppo_tuned
from repertory.components.config.settings import SettingError
from repertory.launch.cli import dry_runs, sweep_command
from repertory.launch.results import runs as runs_lib
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import zoo
from repertory.launch.trained import loading
from support.agents import trained_agents

_CARTPOLE = 'gym:CartPole-v1'


class TestCells:
  def test_patterns(self):
    found = zoo.cells(['ppo', 'd*'], ['gym:C*', 'minatar:b*'])
    assert {(one.agent, one.environment) for one in found} == {
      (agent, environment)
      for agent in ('ppo', 'dqn')
      for environment in (_CARTPOLE, 'minatar:breakout')
    }

  @pytest.mark.parametrize(
    ('patterns', 'message'),
    [
      ((['ppo', 'x*'], ['*']), r"agent must match one of .*ppo.*; got 'x\*'"),
      ((['td3'], ['minatar:*']), 'env must match one of .*walker/walk'),
    ],
  )
  def test_rejects(self, patterns, message):
    with pytest.raises(SettingError, match=message):
      zoo.cells(*patterns)

  def test_all_are_plans_of_train(self):
    chosen = zoo.cells(['*'], ['*'])
    plan = zoo.ZooPlan(chosen, 1, sweep_command.read_settings)
    manifest = manifest_lib.SweepManifest('there')
    for _ in range(2):  # The second one resumes the first.
      plan.open(manifest)
      assert len(manifest.codes) == len(chosen)


@pytest.fixture
def make_manifest(tmp_path):
  """Makes a zoo of runs with exit codes, returns and CPU seconds."""

  def make(groups, runs):
    for path, (_, value, seconds) in runs.items():
      folder = tmp_path / path / 'logs'
      folder.mkdir(parents=True)
      with open(folder / 'evaluator.csv', 'w') as file:
        csv.writer(file).writerows(
          [('steps', 'episode_return'), (trained_agents.STEPS, value)]
        )
      ended = {'ended': '', 'state': 'done', 'cpu_seconds': seconds}
      text = '\n'.join(map(json.dumps, ({'begun': '', 'config': {}}, ended)))
      (folder / 'runs.jsonl').write_text(f'{text}\n')
    return manifest_lib.SweepManifest(
      str(tmp_path),
      groups=groups,
      codes={path: code for path, (code, *_) in runs.items()},
    )

  return make


def test_page_and_policies(make_manifest):
  def settings(agent, environment):
    return {
      'agent': agent,
      'env': environment,
      'steps': 50_000,
      'evaluation_episodes': 20,
    }

  manifest = make_manifest(
    {
      'a': settings('dqn', _CARTPOLE),
      'b': settings('ppo', 'minigrid:MiniGrid-DoorKey-6x6-v0?one_hot=true'),
      'c': settings('ppo', _CARTPOLE),
    },
    {
      **{
        f'a/seed_{seed}': (0, value, 10 * seed)
        for seed, value in enumerate((100, 400, 300, 500))
      },
      'b/seed_0': (1, 7, 1),
      'b/seed_1': (None, 7, 1),
      'c/seed_0': (0, 450, 3),
      'c/seed_1': (1, 999, 3),
    },
  )
  ended = [path for path in manifest.codes if path[0] in 'ac']
  for path in ended:
    trained_agents.write_checkpoint(
      launch.make_experiment(
        {'a': 'dqn', 'c': 'ppo'}[path[0]], _CARTPOLE, max_steps=1,
        seed=int(path[-1]), directory=f'{manifest.directory}/{path}',
      )
    )  # fmt: skip
    zoo.write_results(manifest, path)
  with open(zoo.write_results(manifest)) as file:
    _, *rows = [
      [cell.strip() for cell in line.split('|')[1:-1]]
      for line in file
      if line.startswith('| ')
    ]
  assert [row[:3] for row in rows[1:]] == [
    [f'`{_CARTPOLE}`', 'dqn', '4'],
    [f'`{_CARTPOLE}`', 'ppo', '1 of 2, **1 failed**'],
    [
      '`minigrid:MiniGrid-DoorKey-6x6-v0?one_hot=true`',
      'ppo',
      '0 of 2, **1 failed**',
    ],
  ]
  dqn, ppo, key = (row[3:] for row in rows[1:])
  # The IQM is the mean of 300 and 400.
  assert (dqn[0], dqn[2:5]) == ('325', ['350', '50,000', '15'])
  low, high = map(float, dqn[1].split(' to '))
  assert 100 < low < 325 < high < 500
  assert dqn[5] == '500 (rl-zoo3, benchmark.md)'
  assert dqn[6] == (
    f'`repertory train --agent=dqn --env={_CARTPOLE} --steps=50000 '
    '--evaluation_episodes=20`'
  )
  assert ppo[:5] == ['450', '–', '450', '50,000', '3']
  assert key[:6] == ['–', '–', '–', '50,000', '–', '–']
  assert "'--env=minigrid:MiniGrid-DoorKey-6x6-v0?one_hot=true'" in key[6]
  policies = f'{manifest.directory}/policies'
  for agent, seed in (('dqn', 3), ('ppo', 0)):
    best = loading.read(launch.find_in_zoo(f'{agent}/{_CARTPOLE}', policies))
    assert best.identity['seed'] == seed


@pytest.mark.parametrize(
  ('name', 'content', 'shown'),
  [
    ('results.md', 'mine', 'with results.md, which a zoo would replace'),
    (
      'sweep.json',
      '{"version": 1, "groups": {"lr=1": {}}, "axes": ["config.lr"]}',
      'with sweep.json, which is of a sweep',
    ),
  ],
)
def test_a_directory_of_others_is_refused(
  run_command, tmp_path, name, content, shown
):
  path = tmp_path / name
  path.write_text(content)
  code, _, err = run_command('zoo', '--agent=ppo', f'--directory={tmp_path}')
  assert (code, [*tmp_path.iterdir()]) == (2, [path])
  assert path.read_text() == content
  assert shown in err


@pytest.mark.chaos
def test_two_cells_one_after_the_other(run_command, monkeypatch, tmp_path):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(dry_runs, 'find_refused', dry_runs.plan_all)
  for module in (dqn_tuned, ppo_tuned):
    tiny = tuned_presets.TunedPreset(
      environments={'catch': 1.0}, steps=1_100, source='', evaluation_episodes=2
    )
    monkeypatch.setattr(module, 'TUNED', (tiny,))
  command = ('zoo', '--directory=here', '--env=catch', '--seeds=1')
  code, out, _ = run_command(*command, '--agent=dqn')
  assert code == 0
  assert out.startswith(
    '1 run, 1 combination; done already: 0; 1,100 steps in all;'
  )
  code, out, err = run_command(*command)
  assert code == 0, err
  assert out.startswith('2 runs, 2 combinations; done already: 1;')
  paths = [
    os.path.join('here', f'agent={agent},env=catch,steps=1100', 'seed_0')
    for agent in ('dqn', 'ppo')
  ]
  assert f'begun    {paths[0][5:]}' not in out
  with open(os.path.join('here', zoo.PAGE)) as file:
    page = file.read()
  for path in paths:
    run = runs_lib.read(path)
    assert run.state == 'done'
    assert run.cpu_seconds and run.last
    assert f'| {run.agent} | 1 | {run.last.episode_return:.4g} |' in page
    directory = launch.find_in_zoo(f'{run.agent}/catch', 'here/policies')
    assert launch.load_policy(directory).steps == run.last.steps


def test_cpu_time_is_unknown_after_a_killed_start(tmp_path):
  logs = tmp_path / 'logs'
  logs.mkdir()
  begun, ended = {'begun': ''}, {'ended': '', 'state': 'done', 'cpu_seconds': 2}
  for rows, found in (
    ((begun, ended, begun, ended), 4),
    ((begun, begun, ended), None),
  ):
    text = '\n'.join(map(json.dumps, rows))
    (logs / 'runs.jsonl').write_text(f'{text}\n')
    assert runs_lib.read(str(tmp_path)).cpu_seconds == found
