"""Tests of killed and closed sweeps, which leave nothing and resume.

`make test-chaos` runs these.
"""

import json
import signal

import psutil
import pytest

from support.system import program, terminal_window

pytestmark = pytest.mark.chaos

_SECONDS = 300
_STEPS = 6000
_SWEEP = (
  'sweep', '--directory=mine', '--env=catch', f'--steps={_STEPS}',
  '--config.jit_compile=false', '--evaluation_episodes=2', '--parallel=2',
)  # fmt: skip
_GRID = (*_SWEEP, '--config.learning_rate=1e-3,1e-4')
_PATHS = ('learning_rate=1e-3/seed_0', 'learning_rate=1e-4/seed_0')


def _saved_steps(run):
  """Returns the environment steps of a run's newest checkpoint."""
  states = sorted(run.glob('checkpoints/*/state.json'))
  return json.loads(states[-1].read_text())['counts']['steps']


def _codes(directory):
  return json.loads((directory / 'mine/sweep.json').read_text())['codes']


def _wait_for_both(running, directory):
  for path in _PATHS:
    program.wait_for_learning(running, directory / 'mine' / path, _SECONDS)


def _check_saved(directory):
  for path in _PATHS:
    assert 0 < _saved_steps(directory / 'mine' / path) < _STEPS
  assert _codes(directory) == dict.fromkeys(_PATHS)


def _resume(directory, arguments=_GRID):
  ended = program.repertory(*arguments, cwd=directory).wait(_SECONDS)
  assert ended.code == 0, ended.output
  assert ended.left == []
  return ended.output


def _check_done(directory):
  assert _codes(directory) == dict.fromkeys(_PATHS, 0)
  for path in _PATHS:
    run = directory / 'mine' / path
    assert _saved_steps(run) == _STEPS
    output = (run / 'output.txt').read_text()
    assert 'resumed from checkpoint' in output, output


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_with_their_checkpoints(tmp_path, number):
  running = program.repertory(*_GRID, cwd=tmp_path)
  _wait_for_both(running, tmp_path)
  if number == signal.SIGTERM:
    running.terminate()  # The sweep alone.
  else:
    running.interrupt(number)
  ended = running.wait(_SECONDS)
  assert ended.code == 128 + number, ended.output
  assert ended.left == []
  assert 'The same command resumes' in ended.output
  _check_saved(tmp_path)
  _resume(tmp_path)
  _check_done(tmp_path)


def test_a_window_that_is_closed_stops_all(tmp_path):
  terminal = terminal_window.Terminal(tmp_path, *_GRID)
  try:
    _wait_for_both(terminal, tmp_path)
    children = psutil.Process(terminal.pid).children(recursive=True)
    assert len(children) == 3  # The zygote and two runs.
    terminal.close_window()
    assert terminal.wait(_SECONDS) == 128 + signal.SIGHUP
    assert not any(child.is_running() for child in children)
  finally:
    terminal.kill()
  _check_saved(tmp_path)


def test_runs_of_a_sweep_that_was_killed_stop_by_themselves(tmp_path):
  running = program.repertory(*_GRID, cwd=tmp_path)
  _wait_for_both(running, tmp_path)
  children = psutil.Process(running.pid).children(recursive=True)
  running.kill()
  psutil.wait_procs(children, _SECONDS)
  assert running.wait(_SECONDS).left == []
  _resume(tmp_path)
  _check_done(tmp_path)


def test_a_second_interrupt_leaves_no_node_behind(tmp_path):
  running = program.repertory(
    *_GRID, '--topology=distributed', '--lp_launch_type=local_mp', cwd=tmp_path
  )
  _wait_for_both(running, tmp_path)
  assert len(running.processes()) > 8
  running.interrupt()
  running.interrupt()
  ended = running.wait(_SECONDS)
  assert ended.code == 128 + signal.SIGINT, ended.output
  assert ended.left == []


def test_a_study_resumes(tmp_path):
  arguments = (
    *_SWEEP, '--study=3', '--seeds=2', f'--steps={_STEPS // 2}',
    '--config.learning_rate=1e-5..1e-2:log',
  )  # fmt: skip
  running = program.repertory(*arguments, cwd=tmp_path)
  run = tmp_path / 'mine/trial_0/seed_1'
  program.wait_for_learning(running, run, _SECONDS)
  tried = json.loads((tmp_path / 'mine/sweep.json').read_text())['groups']
  running.interrupt()
  ended = running.wait(_SECONDS)
  assert ended.code == 128 + signal.SIGINT, ended.output
  assert ended.left == []

  output = _resume(tmp_path, arguments)
  assert 'resumed from checkpoint' in (run / 'output.txt').read_text()
  trials = json.loads((tmp_path / 'mine/sweep.json').read_text())['groups']
  assert tried.items() <= trials.items()
  assert sorted(trials) == ['trial_0', 'trial_1', 'trial_2']
  best = output.partition('Best: ')[2].partition(',')[0]
  assert trials[best]['config.learning_rate'] in output
