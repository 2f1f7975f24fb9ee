"""Tests of processes that are forked from one with imported modules."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import uuid

import psutil
import pytest

from repertory.launch.platform import child_processes, zygote
from support.system import program

_SECONDS = 30

# Modules to import: the id of the process that does is in `by`.
_PLAIN = 'import os; by = os.getpid()'
_WITH_A_THREAD = f"""
import threading, time
{_PLAIN}
threading.Thread(target=time.sleep, args=[3600], daemon=True, name='t').start()
"""
_UNFIT = 'raise RuntimeError("unfit")'


class _Task:
  """Imports a module when it is unpickled, and then runs code."""

  def __init__(self, module, code):
    self._state = module, code

  def __reduce__(self):
    module, code = self._state
    return _load, (f'import {module} as imported', code)


def _load(*codes):
  scope = {}
  exec(codes[0], scope)
  return lambda: exec(codes[1], scope)


class _Run:
  def __init__(self, directory, **settings):
    self.client = zygote.Zygote(uuid.uuid4().hex, **settings)
    self._directory = directory

  def start(self, code, module='os', client=None):
    """Starts a process that imports a module and runs code."""
    name = f'node/{len(os.listdir(self._directory))}'
    path = self._directory / name.replace('/', '_')
    with open(path, 'a') as file:
      task = pickle.dumps(_Task(module, code))
      process = (client or self.client).start(name, task, file)
    process.output = path
    return process

  def end(self, process):
    """Returns exit code and output of a process."""
    return process.wait(_SECONDS), process.output.read_text()


@pytest.fixture(name='run')
def _run(tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(tmp_path)  # For modules of the tests.
  (tmp_path / 'output').mkdir()
  run = _Run(tmp_path / 'output')
  yield run
  run.client.close()


@pytest.fixture(name='module')
def _module(tmp_path):
  """Writes a module; returns its name."""

  def write(code):
    name = f'imported_{uuid.uuid4().hex}'
    (tmp_path / f'{name}.py').write_text(code)
    return name

  return write


_PRINT = 'import os; print(imported.by, os.getppid())'


def test_modules_are_imported_once(run, module):
  name = module(_PLAIN)
  processes = [run.start(_PRINT, name) for _ in range(3)]
  ends = [run.end(process) for process in processes]
  by = run.client.pid
  assert ends == [(0, f'{by} {by}\n')] * 3
  assert len({process.pid for process in processes} | {by}) == 4


def test_threads_of_imports_are_not_lost(run, module):
  code = f'import threading; {_PRINT}; print(threading.active_count())'
  plain, threaded = module(_PLAIN), module(_WITH_A_THREAD)
  run.end(run.start(_PRINT, plain))
  for name in (threaded, plain):  # All later ones start afresh, too.
    process = run.start(code, name)
    exit_code, output = run.end(process)
    assert exit_code == 0
    message, *rest = output.splitlines()
    assert message.endswith(': imports started threads.')
    number = 2 if name == threaded else 1
    assert rest == [f'{process.pid} {run.client.pid}', str(number)]


def test_a_failing_import_fails_in_the_process(run, module):
  code, output = run.end(run.start(_PRINT, module(_UNFIT)))
  assert code == 1
  assert output.count('Traceback') == 1
  assert output.endswith('RuntimeError: unfit\n')
  assert run.end(run.start('print(1)')) == (0, '1\n')


def test_a_process_ends_like_any_other(run):
  ends = {
    'import sys; sys.exit(3)': (3, ''),
    'import os, signal; os.kill(os.getpid(), signal.SIGTERM)': (-15, ''),
    'import atexit; atexit.register(print, "last"); print("first")': (
      0,
      'first\nlast\n',
    ),
  }
  processes = {code: run.start(code) for code in ends}
  assert {code: run.end(p) for code, p in processes.items()} == ends
  code, output = run.end(run.start('1 / 0'))
  assert code == 1
  assert output.endswith('ZeroDivisionError: division by zero\n')


def test_random_numbers_differ(run):
  code = 'print(imported.random.random())'
  first, second = (run.end(run.start(code, 'numpy'))[1] for _ in range(2))
  assert first != second


def test_environment_is_that_of_the_start(run, monkeypatch, tmp_path):
  run.end(run.start(''))
  monkeypatch.setenv('LATER', 'yes')
  monkeypatch.chdir(tmp_path)
  code = 'import os; print(os.environ["LATER"], os.getcwd())'
  assert run.end(run.start(code)) == (0, f'yes {tmp_path}\n')


_SLEEP = 'import time; time.sleep(3600)'
_SET_UP = f"""
import sys
from repertory.launch.platform import child_processes
child_processes.set_up_node(int(sys.argv[1]))
print('ready', flush=True)
{_SLEEP}
"""


def _wait_until_ready(process):
  program.wait_until(
    lambda: 'ready' in process.output.read_text(), _SECONDS, 'the process'
  )


def test_after_its_end_another_one_is_started(run):
  first = run.start(_SET_UP)
  _wait_until_ready(first)
  psutil.Process(run.client.pid).kill()
  assert first.wait(_SECONDS) == -signal.SIGKILL
  program.wait_until(
    lambda: not psutil.pid_exists(first.pid), _SECONDS, 'the end'
  )
  assert run.end(run.start('print(1)')) == (0, '1\n')


def test_a_process_that_has_not_started_is_killed_alone(run, module):
  other = run.start(_SET_UP)
  _wait_until_ready(other)
  process = run.start(_SLEEP, module('import time; time.sleep(2)'))
  child_processes.kill_tree(process)
  assert process.poll() == -signal.SIGKILL  # Before its start.
  assert other.poll() is None


def test_it_ends_while_it_imports(run, module):
  process = run.start('', module(_SLEEP))
  run.client.close()
  assert process.poll() == -signal.SIGKILL


def test_processes_that_imports_start_are_no_nodes(run, module):
  child = 'import subprocess; subprocess.Popen(["true"])'
  other = run.start(_SET_UP)
  assert run.end(run.start('print(1)', module(child))) == (0, '1\n')
  _wait_until_ready(other)
  assert other.poll() is None


def test_paths_are_those_of_the_start(run, module, monkeypatch, tmp_path):
  run.client.begin()
  (tmp_path / 'later').mkdir()
  name = module(_PLAIN)
  (tmp_path / f'{name}.py').rename(tmp_path / 'later' / f'{name}.py')
  monkeypatch.chdir(tmp_path / 'later')
  monkeypatch.setattr(sys, 'path', ['', *sys.path])
  by = run.client.pid
  assert run.end(run.start(_PRINT, name)) == (0, f'{by} {by}\n')


_CLIENT = f"""
import pickle, sys, time
from repertory.launch.platform import zygote
task, output = sys.argv[1:]
client = zygote.Zygote('{{run}}')
with open(output, 'a') as file:
  process = client.start('node', bytes.fromhex(task), file)
  while not process._pid:
    process.poll()
print(client.pid, process.pid, flush=True)
{_SLEEP}
"""


def test_everything_ends_with_a_killed_client(tmp_path):
  task = pickle.dumps(_Task('os', _SET_UP)).hex()
  code = _CLIENT.format(run=uuid.uuid4().hex)
  with subprocess.Popen(
    [sys.executable, '-c', code, task, str(tmp_path / 'output')],
    stdout=subprocess.PIPE,
    env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)},
    text=True,
  ) as client:
    try:
      ids = [int(word) for word in client.stdout.readline().split()]
      assert len(ids) == 2
      assert all(map(psutil.pid_exists, ids))
    finally:
      client.kill()
  program.wait_until(
    lambda: not any(map(psutil.pid_exists, ids)), _SECONDS, 'the end'
  )


def test_a_shared_one_serves_until_its_last_client_ends(tmp_path):
  run = _Run(tmp_path, is_shared=True)
  other = zygote.Zygote(run.client._run, is_shared=True)
  with contextlib.closing(other):
    process, others = run.start(_SET_UP), run.start(_SET_UP, client=other)
    for one in (process, others):
      _wait_until_ready(one)
    assert run.client.pid == other.pid
    assert psutil.Process(other.pid).ppid() != os.getpid()
    ids = process.pid, others.pid, other.pid
    run.client.close()
    program.wait_until(
      lambda: not psutil.pid_exists(ids[0]), _SECONDS, 'the end'
    )
    assert others.poll() is None
  program.wait_until(
    lambda: not any(map(psutil.pid_exists, ids)), _SECONDS, 'the end'
  )
