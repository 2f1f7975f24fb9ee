"""Tests that hangs are detected, reported and ended."""

import re
import threading
import time

import pytest

from repertory.launch.platform import interrupts, watchdog
from support.system import program

_SECONDS = 120

_HANGING = """
import sys
import time
from repertory import launch
from repertory.agents import dqn
from repertory.environments.registry import registry

def make_environment(seed):
  environment = registry.make('catch', seed)
  step, steps = environment.step, []
  def hanging_step(action):
    steps.append(action)
    if len(steps) == 300:
      time.sleep(10**6)
    return step(action)
  environment.step = hanging_step
  return environment

if __name__ == '__main__':
  experiment = launch.Experiment(
    dqn.DQNBuilder(dqn.DQNConfig(jit_compile=False)), make_environment,
    max_steps=10**6, evaluation_episodes=0, directory='run', stall_seconds=6)
  try:
    launch.run(experiment, sys.argv[1])
  except launch.NodeError as error:
    print('NODE', error.failure.node)
    print(error)
    sys.exit(1)
"""


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
  script = tmp_path / 'hanging.py'
  script.write_text(_HANGING)
  command = [str(script), topology]
  ended = program.Program(command, str(tmp_path)).wait(_SECONDS)
  assert ended.code == 1, ended.output
  assert ended.left == []
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
