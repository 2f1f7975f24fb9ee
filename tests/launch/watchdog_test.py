"""Tests that what hangs is noticed, told and ended."""

import re
import threading
import time

import pytest

import program
from repertory.launch import interrupts, watchdog

_SECONDS = 120

_HANGING = """
import sys
import time
from repertory import launch
from repertory.agents import dqn
from repertory.environments import registry

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
    dqn.DQNBuilder(), make_environment, max_steps=10**6, directory='run',
    evaluation_episodes=0, stall_seconds=3)
  try:
    launch.run(experiment, {topology!r})
  except launch.NodeError as error:
    print('NODE', error.failure.node)
    print(error)
    sys.exit(1)
"""


class TestWatching:
  def test_tells_once_how_long_nothing_went_on(self):
    told = []
    with watchdog.watching(lambda: 1, 0.2, told.append):
      time.sleep(1)
    assert len(told) == 1
    assert 0.2 < told[0] < 0.6

  def test_progress_of_any_kind_is_progress(self):
    told = []
    start = time.monotonic()
    with watchdog.watching(
      lambda: (1, int(10 * (time.monotonic() - start))), 0.5, told.append
    ):
      time.sleep(1.5)
    assert not told

  def test_ends_with_the_block(self):
    with watchdog.watching(lambda: 1, 10, lambda seconds: None):
      pass
    assert 'watchdog' not in {t.name for t in threading.enumerate()}


class TestRaisingOnDemand:
  def test_ends_a_sleep_of_the_main_thread(self):
    with interrupts.raising_on_demand() as demand:
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
      with interrupts.raising_on_demand() as demand:
        demand(KeyError('nobody hears this'))
        results.append('went on')

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == ['went on']


@pytest.mark.parametrize(
  'topology',
  ['single', pytest.param('distributed', marks=pytest.mark.chaos)],
)
def test_hanging_environment_ends_the_run_with_its_actor(tmp_path, topology):
  script = tmp_path / 'hanging.py'
  script.write_text(_HANGING.replace('{topology!r}', repr(topology)))
  ended = program.Program([str(script)], str(tmp_path)).wait(_SECONDS)
  assert ended.code == 1, ended.output
  assert ended.left == []
  assert 'NODE actor/0' in ended.output
  # What was learned until then is not lost.
  assert (tmp_path / 'run' / 'checkpoints' / '00000001').is_dir()
  if topology == 'single':
    assert re.search(r'in its environment for \d s', ended.output)
    report = (tmp_path / 'run' / 'logs' / 'stall.txt').read_text()
    assert 'in hanging_step' in report
    assert "Table 'replay' holds" in report
  else:
    assert re.search(r'at one step or reset for \d seconds', ended.output)
