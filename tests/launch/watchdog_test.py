"""Tests that hangs are detected, reported and ended."""

import json
import re
import threading
import time

import pytest

from repertory.launch.platform import interrupts, watchdog
from support.system import program

_SECONDS = 120

_HANGING = """
import shutil
import sys
import tempfile
import time
from repertory import launch
from repertory.agents import dqn
from repertory.environments.registry import registry

made = []

def make_environment(seed):
  environment = registry.make('catch', seed)
  made.append(environment)
  step, steps = environment.step, []
  def hanging_step(action):
    steps.append(action)
    if {condition}:
      {trouble}
      time.sleep(10**6)
    return step(action)
  environment.step = hanging_step
  return environment

if __name__ == '__main__':
  experiment = launch.Experiment(
    dqn.DQNBuilder(dqn.DQNConfig(jit_compile=False)), make_environment,
    directory='run', stall_seconds=6,
    {settings})
  try:
    launch.run(experiment, {topology!r})
  except launch.NodeError as error:
    print('NODE', error.failure.node)
    print(error)
    sys.exit(1)
"""


def _run_hanging(
  folder,
  topology='single',
  condition='len(steps) == 300',
  trouble='pass',
  settings='max_steps=10**6, evaluation_episodes=0',
) -> program.Ended:
  """Runs an experiment whose environment hangs.

  Args:
    folder: Parent of its directory, 'run'.
    topology: Topology of the run.
    condition: Condition of the step at which the environment hangs.
    trouble: Code that runs before.
    settings: Settings of the experiment.
  """
  script = folder / 'hanging.py'
  script.write_text(
    _HANGING.format(
      topology=topology,
      condition=condition,
      trouble=trouble,
      settings=settings,
    )
  )
  ended = program.Program([str(script)], str(folder)).wait(_SECONDS)
  assert ended.code == 1, ended.output
  assert ended.left == []
  return ended


class TestWatching:
  def test_reports_the_stall_time_once(self):
    reported = []
    with watchdog.watching(lambda: 1, 0.2, reported.append):
      time.sleep(1)
    assert len(reported) == 1
    assert 0.2 < reported[0] < 0.6


class TestRaisingOnDemand:
  def test_ends_a_sleep_of_the_main_thread(self):
    with interrupts.interruptible() as demand:
      timer = threading.Timer(0.2, demand, [KeyError('wake up')])
      timer.start()
      start = time.monotonic()
      with pytest.raises(KeyError, match='wake up'):
        time.sleep(30)
    timer.join()
    assert time.monotonic() - start < 10

  def test_does_nothing_to_other_threads(self):
    results = []

    def work():
      with interrupts.interruptible() as demand:
        demand(KeyError('dropped'))
        results.append('went on')

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == ['went on']


@pytest.mark.chaos
@pytest.mark.parametrize('topology', ['single', 'distributed'])
def test_hanging_environment_ends_the_run_with_its_actor(tmp_path, topology):
  ended = _run_hanging(tmp_path, topology)
  assert 'NODE actor/0' in ended.output
  # What was learned until then is not lost.
  assert (tmp_path / 'run' / 'checkpoints' / '00000001').is_dir()
  if topology == 'single':
    assert re.search(r'in its environment for \d+ s', ended.output)
    report = (tmp_path / 'run' / 'logs' / 'stall.txt').read_text()
    assert 'in hanging_step' in report
    assert "Table 'replay' holds" in report
  else:
    assert re.search(r'at one step or reset for \d seconds', ended.output)


@pytest.mark.chaos
def test_environment_that_hangs_in_the_last_evaluation_ends_the_run(tmp_path):
  ended = _run_hanging(
    tmp_path,
    # The evaluator's environment is made last.
    condition='environment is made[-1] and len(steps) == 5',
    settings='max_steps=600, evaluation_episodes=1, evaluation_period=10**6',
  )
  assert 'NODE evaluator' in ended.output
  assert re.search(r'last progress \d+ s ago', ended.output)
  report = (tmp_path / 'run' / 'logs' / 'stall.txt').read_text()
  assert 'in hanging_step' in report
  # It was written before the evaluation.
  state = tmp_path / 'run' / 'checkpoints' / '00000001' / 'state.json'
  assert json.loads(state.read_text())['counts']['steps'] == 600
