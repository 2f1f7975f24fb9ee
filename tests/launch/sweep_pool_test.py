"""Tests of the process pool, with minimal processes."""

import contextlib
import os
import signal
import sys
import threading
import time
from concurrent import futures
from typing import Any

import psutil
import pytest

from repertory.components.config.settings import SettingError
from repertory.launch.experiments import directories
from repertory.launch.sweeps import manifest, sweep


def _train(arguments):
  """Creates a file in the run's directory, and then runs Python code."""
  code, directory = (argument.partition('=')[2] for argument in arguments)

  def note(what):
    with open(f'{directory}/noted', 'a') as file:
      file.write(f'{time.monotonic()} {what}\n')

  def stop(number, frame):
    note('stopped')
    sys.exit(128 + number)

  signal.signal(signal.SIGTERM, stop)
  note('begun')
  exec(code, {**globals(), 'note': note})
  note('ended')


_SECONDS = 60


class _Plan:
  """Plan of given runs."""

  def __init__(self, runs):
    self.waiting = [*runs]

  def next(self):
    return self.waiting.pop(0) if self.waiting else None

  def end(self, run):
    pass


@pytest.fixture(autouse=True)
def cheap_children(monkeypatch):
  monkeypatch.setattr(sweep, '_MODULES', [])
  yield
  left = psutil.Process().children(recursive=True)
  for process in left:
    process.kill()
  assert not left


def _runs(*codes):
  return [
    manifest.SweepRun(f'run_{i}', f'run_{i}/seed_0', (f'--code={code}',))
    for i, code in enumerate(codes)
  ]


def _run(tmp_path, runs, parallel, stop_seconds: float = _SECONDS):
  """Returns the pool after it ran, its signal, and codes by group."""
  plan: Any = _Plan(runs)
  found = manifest.SweepManifest(str(tmp_path))
  pool = sweep.Pool(plan, found, _train, parallel, stop_seconds)
  number = pool.run()
  codes = {os.path.dirname(path): code for path, code in found.codes.items()}
  return pool, number, codes


def _noted(tmp_path, run):
  """Returns the times of a run's notes."""
  path = tmp_path / run.path / 'noted'
  lines = path.read_text().splitlines() if path.exists() else []
  return {what: float(at) for at, what in map(str.split, lines)}


@contextlib.contextmanager
def _signals_after(tmp_path, runs, what, *numbers):
  """Sends signals to this process after all runs have made a note."""

  def watch():
    while not all(what in _noted(tmp_path, run) for run in runs):
      time.sleep(0.05)
    for number in numbers:
      os.kill(os.getpid(), number)
      time.sleep(0.1)

  with futures.ThreadPoolExecutor() as threads:
    threads.submit(watch)
    yield


def test_runs_n_at_a_time(tmp_path):
  runs = _runs(*['time.sleep(.3)'] * 3)
  _, number, codes = _run(tmp_path, runs, 2)
  assert number is None
  assert codes == dict.fromkeys(['run_0', 'run_1', 'run_2'], 0)
  first, second, third = (_noted(tmp_path, run) for run in runs)
  assert first['begun'] < second['ended']
  assert second['begun'] < first['ended']
  assert third['begun'] > min(first['ended'], second['ended'])


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
  pool, number, codes = _run(tmp_path, runs, 3)
  assert number is None
  assert [codes[f'run_{i}'] for i in range(4)] == [7, -9, None, 0]
  failures = {os.path.dirname(one.path): one for one in pool.failures}
  assert failures.keys() == {'run_0', 'run_1', 'run_2'}
  assert failures['run_0'].lines == ['first', 'last words']
  assert output.read_text() == 'earlier\nfirst\nlast words\n'
  assert 'could not start' in failures['run_2'].lines[0]


def test_a_signal_lets_all_stop_and_begins_no_other(tmp_path):
  runs = _runs(*['time.sleep(60)'] * 3)
  with _signals_after(tmp_path, runs[:2], 'begun', signal.SIGHUP):
    pool, number, codes = _run(tmp_path, runs, 2)
  assert number == signal.SIGHUP
  assert codes == dict.fromkeys(['run_0', 'run_1'])
  assert not pool.failures
  assert 'stopped' in _noted(tmp_path, runs[0])


_DEAF = 'signal.signal(15, signal.SIG_IGN); note("deaf"); time.sleep(60)'


def test_a_run_that_does_not_stop_in_time_is_killed(tmp_path):
  runs = _runs(_DEAF)
  with _signals_after(tmp_path, runs, 'deaf', signal.SIGTERM):
    _, number, codes = _run(tmp_path, runs, 1, stop_seconds=0.5)
  assert (number, codes) == (signal.SIGTERM, {'run_0': None})


def test_a_signal_reaches_a_run_that_has_not_begun(tmp_path, monkeypatch):
  (tmp_path / 'slowly_imported.py').write_text('import time; time.sleep(5)')
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setattr(sweep, '_MODULES', ['slowly_imported'])
  threading.Timer(1, os.kill, [os.getpid(), signal.SIGTERM]).start()
  runs = _runs('time.sleep(20)')
  _, number, codes = _run(tmp_path, runs, 1)
  assert (number, codes) == (signal.SIGTERM, {'run_0': None})
  assert 'ended' not in _noted(tmp_path, runs[0])


def test_a_second_interrupt_kills_all_at_once(tmp_path):
  runs = _runs(_DEAF, _DEAF)
  with (
    _signals_after(tmp_path, runs, 'deaf', signal.SIGINT, signal.SIGINT),
    pytest.raises(KeyboardInterrupt),
  ):
    _run(tmp_path, runs, 2)


@pytest.mark.parametrize('fresh', [False, True])
def test_a_directory_whose_runs_still_write_is_refused(tmp_path, fresh):
  # Moved aside, it would be made again, and written to, by such a run.
  plan: Any = None
  with (
    directories.hold(str(tmp_path / 'lr=1/seed_0')),
    pytest.raises(SettingError, match=r'a run still writes to .*/seed_0'),
    sweep.opened(str(tmp_path), plan, fresh),
  ):
    pass
