"""Tests of commands that compare runs, on real runs."""

import json
import os
import shutil

import numpy as np
import pytest

from repertory import launch
from repertory.launch import results
from support.environments import troubled_environments

_DQN = {'min_replay_size': 20, 'jit_compile': False, 'hidden_sizes': (8,)}


@pytest.fixture(scope='module')
def made(tmp_path_factory):
  """Runs of one thread and of several."""
  folder = tmp_path_factory.mktemp('made')
  for name, seed, topology in (
    ('seed_0', 0, 'single'),
    ('threads', 1, 'distributed'),
  ):
    experiment = launch.make_experiment(
      'dqn',
      'catch',
      max_steps=300,
      config=_DQN,
      seed=seed,
      directory=str(folder / name),
      evaluation_episodes=2,
      evaluation_period=100,
    )
    launch.run(experiment, topology, display=False)
  return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
  """A working folder, with a copy of the runs in `runs`."""
  shutil.copytree(made, tmp_path / 'runs')
  monkeypatch.chdir(tmp_path)
  return tmp_path


class TestRecords:
  def test_settings_are_those_of_the_experiment(self, made):
    run = results.read(made / 'threads')
    assert run.settings.get('launch_type') == 'local_mt'
    assert run.seed == run.experiment['seed'] == 1
    assert (run.steps, run.max_steps) == (300, 300)
    assert run.settings['config.min_replay_size'] == 20
    inserts, samples = (
      run.logs.column('replay', f'{side}_wait')
      for side in ('inserts', 'samples')
    )
    assert len(inserts) == len(samples) > 0
    assert np.all(inserts + samples <= 1)

  def test_is_running_while_it_runs_and_failed_when_it_failed(self, tmp_path):
    seen = []

    def trouble():
      seen.append(results.read(tmp_path / 'run'))
      raise RuntimeError('trouble')

    factory = troubled_environments.Troubled(2, 'step', trouble)
    experiment = troubled_environments.make_experiment(tmp_path, factory)
    with pytest.raises(launch.NodeError):
      launch.run(experiment, display=False)
    assert seen[0].state == 'running'
    run = results.read(tmp_path / 'run')
    assert (run.state, run.why) == ('failed', 'actor/0: RuntimeError: trouble')
    assert run.steps


class TestCommands:
  @pytest.fixture(autouse=True)
  def _break_some(self, folder):
    """Adds torn, empty and foreign files to the good ones."""
    torn = folder / 'runs/torn'
    shutil.copytree(folder / 'runs/threads', torn)
    for path in (torn / 'logs').glob('*.*'):
      if path.is_file():
        os.truncate(path, path.stat().st_size * 2 // 3)
    os.remove(torn / 'logs/runs.jsonl')
    shutil.rmtree(torn / 'checkpoints')
    (torn / 'logs/nodes.jsonl').write_text('{')
    (folder / 'runs/empty').mkdir()
    (folder / 'runs/foreign.png').mkdir()
    (folder / 'runs/foreign.png/notes.txt').touch()

  def test_runs(self, folder, run_command):
    code, out, err = run_command('runs')
    assert code == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
      f'runs/{name}' for name in ('seed_0', 'threads')
    ]
    assert '300 of 300' in lines[1]
    assert err.count('\n') == 1
    for name in ('empty', 'foreign.png', 'torn'):
      assert f'runs/{name} (' in err
    code, out, _ = run_command('runs', 'runs', '--format=json', '--sort=-seed')
    rows = json.loads(out)
    assert [row['seed'] for row in rows] == [1, 0]

  def test_plot(self, folder, run_command):
    code, out, err = run_command(
      'plot', 'runs', '--what=return,losses,ratio,speed',
      '--output=new/plot.svg', '--over=learner_steps',
    )  # fmt: skip
    assert code == 0, err
    assert out == 'Plot: new/plot.svg\n'
    assert 'runs/torn' in err
    assert (folder / 'new/plot.svg').stat().st_size > 10_000
    code, out, _ = run_command('plot', 'runs/seed_0', '--statistic=iqm')
    assert (code, out) == (0, 'Plot: plot.png\n')

  def test_report(self, folder, run_command):
    code, out, err = run_command('report', 'runs')
    assert (code, out) == (0, 'Report: report.html\n')
    assert 'runs/torn' in err
    text = (folder / 'report.html').read_text()
    for expected in ('dqn, single', 'dqn, distributed', 'runs/torn'):
      assert expected in text

  @pytest.mark.parametrize(
    ('arguments', 'message'),
    [
      (['runs', 'nowhere'], 'nowhere is not there'),
      (['runs', 'runs/foreign.png/notes.txt'], 'notes.txt is a file'),
      (['runs', '--sort=stpes'], "Did you mean 'steps'?"),
      (['runs', '--format=xml'], "--format must be one of text, csv, json; g"),
      (['plot'], 'Name directories of runs, or folders of them: repertory'),
      (['plot', 'runs/empty'], 'no readable run. Left out: runs/empty (no'),
      (['plot', 'runs', '--output=a.pdf'], '--output must end with .png or .s'),
      (['plot', 'runs', '--output=runs/seed_0/.lock/a.png'], 'be writable; g'),
      (['plot', 'runs', '--output=runs/foreign.png'], 'must be a file; runs'),
      (['plot', 'runs', '--what=loses'], "Did you mean 'losses'?"),
      (['plot', 'runs', '--what=lag'], '--what must be in the logs; got lag'),
      (['plot', 'runs', '--over=time'], '--over must be one of steps, learner'),
      (['plot', 'runs', '--statistic=median'], '--statistic must be one of'),
      (['report', 'runs', '--output=a.png'], '--output must end with .html'),
    ],
  )  # fmt: skip
  def test_bad_input_is_reported_and_nothing_written(
    self, folder, run_command, arguments, message
  ):
    code, out, err = run_command(*arguments)
    assert (code, out) == (2, '')
    assert message in err
    assert 'Traceback' not in err
    assert os.listdir(folder) == ['runs']

  def test_without_a_folder_says_where_runs_come_from(
    self, tmp_path_factory, run_command, monkeypatch
  ):
    monkeypatch.chdir(tmp_path_factory.mktemp('nothing'))
    code, _, err = run_command('runs')
    assert code == 2
    assert '`repertory train` makes it' in err
