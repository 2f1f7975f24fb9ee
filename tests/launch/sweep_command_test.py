"""Tests of arguments of `repertory sweep`."""

import json
import os
import sys

import pytest

from repertory.agents import ppo
from repertory.launch import sweeps
from repertory.launch.cli import dry_runs, sweep_command
from repertory.launch.sweeps import sweep
from support.launch import log_files

_HERE = ('sweep', '--directory=here')


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


class TestBadInput:
  @pytest.mark.parametrize(
    ('arguments', 'message'),
    [
      (['sweep'], '--directory must be the path of a directory; got nothing'),
      (
        [*_HERE, '--sedes=3'],
        "Unknown flag '--sedes'. Did you mean '--seeds'?",
      ),
      ([*_HERE, '--seeds=0'], '--seeds must be at least 1, got 0.'),
      (
        [*_HERE, '--seeds=3', '--seed=1'],
        '--seeds must be left out with --seed.',
      ),
      ([*_HERE, '--seeds=10001'], 'at most 10,000 combinations, got 10,001.'),
      ([*_HERE, '--parallel=0'], '--parallel must be at least 1, got 0.'),
      ([*_HERE, '--fresh', '--storage=s'], '--fresh must be left out with --s'),
      (
        [*_HERE, '--timeout_seconds=60,70'],
        "--timeout_seconds must be a number, got '60,70'.",
      ),
      (
        [*_HERE, '--config.hidden_sizes=64,64'],
        '--config.hidden_sizes is a list',
      ),
      (
        [*_HERE, '--config.n_step=1..3'],
        '--config.n_step must be values, as o',
      ),
      # Values that `train` rejects, in any combination.
      (
        [*_HERE, '--config.learning_rate=1,-1'],
        '--config.learning_rate must be positive, got -1.0.',
      ),
      (
        [*_HERE, '--agent=ppo,dqn', '--config.dueling=true,false'],
        "--config.dueling is not a setting of agent 'ppo'.",
      ),
      (
        [*_HERE, '--topology=single,distributed', '--lp_launch_type=local_mp'],
        '--lp_launch_type must be local_mt',
      ),
      # The search.
      (
        [*_HERE, '--study_seed=3'],
        '--study_seed must be left out without --study.',
      ),
      ([*_HERE, '--study=3'], '--study must have a setting with a range'),
      (
        [*_HERE, '--study=3', '--config.n_step=1..3', '--env=catch,chain'],
        '--env must be one with --study',
      ),
      (
        [*_HERE, '--study=3', '--steps=9..99', '--evaluation_episodes=0'],
        '--evaluation_episodes must be at least 1 with --study',
      ),
      (
        [*_HERE, '--study=3', '--config.n_step=1..3', '--study_seed=-1'],
        '--study_seed must be at least 0',
      ),
    ],
  )
  def test_is_reported_and_nothing_written(
    self, run_command, arguments, message
  ):
    code, out, err = run_command(*arguments)
    assert (code, out) == (2, '')
    assert message in err
    assert 'Traceback' not in err
    assert os.listdir() == []

  def test_needs_optuna_for_a_study_alone(self, run_command, monkeypatch):
    assert sweeps.study  # So that there is a module to forget.
    monkeypatch.setitem(sys.modules, 'optuna', None)
    monkeypatch.delitem(sys.modules, 'repertory.launch.sweeps.study')
    monkeypatch.delattr(sweeps, 'study')
    code, _, err = run_command(*_HERE, '--study=3', '--config.n_step=1..3')
    assert code == 2
    assert "--study needs the package optuna: pip install 'repertory[s" in err


def test_a_run_does_not_go_to_the_directory_of_a_sweep(run_command, tmp_path):
  (tmp_path / 'here').mkdir()
  (tmp_path / 'here' / 'sweep.json').write_text('{}')
  code, _, err = run_command('train', '--env=catch', '--directory=here')
  assert code == 2
  assert '--directory must be that of a run, or a new one, got here, whi' in err
  assert os.listdir('here') == ['sweep.json']


_BRIEF = (
  *_HERE, '--steps=60', '--evaluation_episodes=2', '--evaluation_period=30',
  '--config.min_replay_size=10', '--config.jit_compile=false',
)  # fmt: skip


def test_what_takes_tensorflow_to_be_refused(run_command):
  code, out, err = run_command(
    *_BRIEF, '--config.learning_rate=1e-3,1e-4', '--seeds=2',
    '--config.max_replay_size=100,9',
  )  # fmt: skip
  assert (code, out) == (2, '')
  assert 'With --config.learning_rate=1e-3 --config.max_replay_size=9: ' in err
  assert 'must be at most max_replay_size = 9' in err
  assert os.listdir() == []


@pytest.mark.chaos
def test_runs_combinations_and_reports_failures(run_command, monkeypatch):
  monkeypatch.setattr(dry_runs, 'find_refused', dry_runs.plan_all)
  code, out, err = run_command(
    *_BRIEF, '--config.learning_rate=1e-3,1e30', '--parallel=2'
  )
  assert code == 1
  good, bad = 'learning_rate=1e-3', 'learning_rate=1e30'
  returns = log_files.rows(f'here/{good}/seed_0', 'evaluator')
  (row,) = [line for line in out.splitlines() if line.startswith(f'{good} ')]
  assert float(row.split()[2]) == pytest.approx(
    returns[-1]['episode_return'], abs=1e-3
  )
  assert os.path.getsize('here/returns.png') > 1000
  assert f'{bad}/seed_0 failed, exit code 1. Its last output:' in err
  assert 'FloatingPointError: Learning diverged' in err
  with open(f'here/{bad}/seed_0/{sweep.OUTPUT}') as file:
    assert 'Learning diverged' in file.read()
  with open('here/sweep.json') as file:
    codes = json.load(file)['codes']
  assert codes == {f'{good}/seed_0': 0, f'{bad}/seed_0': 1}

  # Finished runs are not repeated, and others stay.
  again = run_command(*_BRIEF, '--config.learning_rate=1e-3')
  assert again[0] == 0
  assert 'done already: 1' in again[1]
  assert 'begun' not in again[1]
  assert row in again[1]
  assert os.path.isdir(f'here/{bad}')
  code, _, err = run_command(*_BRIEF, '--config.n_step=2')
  assert code == 2
  assert '--config.n_step: 3 there, 2 now' in err


def test_settings_are_as_train_reads_them():
  found = sweep_command.read_settings(
    ['--agent=ppo', '--config.hidden_sizes=8,8', '--nocheckpoint_replay']
  )
  assert found['agent'] == 'ppo'
  assert found['config.hidden_sizes'] == [8, 8]
  assert found['steps'] == 10_000
  assert not {'checkpoint_replay', 'directory'} & found.keys()
  assert found['config.learning_rate'] == ppo.PPOConfig().learning_rate
