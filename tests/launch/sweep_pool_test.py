"""Tests of the process pool, with minimal processes."""

import os
import signal
import sys
from typing import Any

import psutil
import pytest

from repertory.launch.sweeps import manifest, sweep

# Creates a file in the run's directory, and then runs its last argument as
# Python code.
_SCRIPT = """
import signal, sys, time
*_, code, directory = sys.argv
directory = directory.partition('=')[2]

def note(what):
  with open(f'{directory}/noted', 'a') as file:
    file.write(f'{time.monotonic()} {what}\\n')

def stop(number, frame):
  note('stopped')
  sys.exit(128 + number)

signal.signal(signal.SIGTERM, stop)
note('begun')
exec(code.replace('--code=', ''))
note('ended')
"""
_SECONDS = 60


class _Plan:
  """Plan that records results, and stops some runs; watches the pool."""

  def __init__(self, runs):
    self._waiting = [*runs]
    self.ended = {}
    self.given_up = []
    self.counts = []
    self.num_begun = 0
    self.watch = lambda: None

  def next(self):
    self.num_begun += bool(self._waiting)
    return self._waiting.pop(0) if self._waiting else None

  def unwanted(self):
    self.counts.append(self.num_begun - len(self.ended))
    self.watch()
    return self.given_up

  def end(self, ended):
    self.ended[ended.run.group] = ended


@pytest.fixture(autouse=True)
def cheap_children(monkeypatch):
  monkeypatch.setattr(
    sweep, 'command', lambda module: [sys.executable, '-c', _SCRIPT]
  )
  yield
  left = psutil.Process().children(recursive=True)
  for process in left:
    process.kill()
  assert not left


def _runs(*codes):
  return [
    manifest.SweepRun(f'run_{i}', '0', (f'--code={code}',))
    for i, code in enumerate(codes)
  ]


def _run(tmp_path, plan: Any, parallel, stop_seconds: float = _SECONDS):
  return sweep.Pool(
    plan,
    manifest.SweepManifest(str(tmp_path)),
    lambda run: [f'--directory={tmp_path / run.path}'],
    parallel,
    stop_seconds,
  ).run()


def _noted(tmp_path, run):
  """Returns the times of a run's notes."""
  path = tmp_path / run.path / 'noted'
  lines = path.read_text().splitlines() if path.exists() else []
  return {what: float(at) for at, what in map(str.split, lines)}


def _once(tmp_path, runs, what, act):
  """Returns a watcher that acts once, after all runs have made a note."""
  is_done = []

  def watch():
    if not is_done and all(what in _noted(tmp_path, run) for run in runs):
      is_done.append(True)
      act()

  return watch


def _send(number):
  return lambda: os.kill(os.getpid(), number)


def test_runs_n_at_a_time(tmp_path):
  plan = _Plan(_runs(*['time.sleep(.3)'] * 3))
  assert _run(tmp_path, plan, 2) is None
  assert [ended.code for ended in plan.ended.values()] == [0] * 3
  assert max(plan.counts) == 2


def test_a_run_that_fails_leaves_the_others_alone(tmp_path):
  runs = _runs(
    'print("first"); print("last words"); sys.exit(7)',
    'import os; os.kill(os.getpid(), 9)',
    '',
    '',
  )
  output = tmp_path / runs[0].path / sweep.OUTPUT
  output.parent.mkdir(parents=True)
  output.write_text('earlier\n')
  (tmp_path / 'run_2').write_text('A file where a folder should be.')
  plan = _Plan(runs)
  assert _run(tmp_path, plan, 3) is None
  ended = plan.ended
  assert [ended[f'run_{i}'].code for i in range(4)] == [7, -9, None, 0]
  assert ended['run_0'].lines == ['first', 'last words']
  assert output.read_text() == 'earlier\nfirst\nlast words\n'
  assert 'could not start' in ended['run_2'].lines[0]
  assert not any(one.was_stopped for one in ended.values())


def test_a_signal_lets_all_stop_and_begins_no_other(tmp_path):
  number = signal.SIGHUP
  runs = _runs(*['time.sleep(60)'] * 3)
  plan = _Plan(runs)
  plan.watch = _once(tmp_path, runs[:2], 'begun', _send(number))
  assert _run(tmp_path, plan, 2) == number
  codes = {group: one.code for group, one in plan.ended.items()}
  assert codes == dict.fromkeys(['run_0', 'run_1'], 128 + signal.SIGTERM)
  assert all(one.was_stopped for one in plan.ended.values())
  assert 'stopped' in _noted(tmp_path, runs[0])
  assert plan.num_begun == 2


_DEAF = 'signal.signal(15, signal.SIG_IGN); note("deaf"); time.sleep(60)'


def test_a_run_that_does_not_stop_in_time_is_killed(tmp_path):
  runs = _runs(_DEAF)
  plan = _Plan(runs)
  plan.watch = _once(tmp_path, runs, 'deaf', _send(signal.SIGTERM))
  assert _run(tmp_path, plan, 1, stop_seconds=0.5) == signal.SIGTERM
  assert plan.ended['run_0'].code == -signal.SIGKILL


def test_a_second_interrupt_kills_all_at_once(tmp_path):
  runs = _runs(_DEAF, _DEAF)
  plan = _Plan(runs)

  def interrupt_twice():
    _send(signal.SIGINT)()
    _send(signal.SIGINT)()

  plan.watch = _once(tmp_path, runs, 'deaf', interrupt_twice)
  with pytest.raises(KeyboardInterrupt):
    _run(tmp_path, plan, 2)


def test_runs_that_are_not_wanted_are_stopped(tmp_path):
  runs = _runs('time.sleep(60)', 'time.sleep(.5)')
  plan = _Plan(runs)
  plan.watch = _once(
    tmp_path, runs[:1], 'begun', lambda: plan.given_up.append(runs[0])
  )
  assert _run(tmp_path, plan, 2) is None
  assert plan.ended['run_0'].was_stopped
  assert plan.ended['run_1'].code == 0
