"""Tests of threads and processes that are launched without Launchpad."""

import concurrent.futures
import subprocess
import sys
import threading

import psutil
import pytest

import program
from repertory import launch
from repertory.components import interfaces
from repertory.launch.host import child_processes
from repertory.launch.launchers import (
  calls,
  carriers,
  conformance,
  local_nodes,
  local_workers,
)
from repertory.launch.launchers import program as program_lib

_SECONDS = 60
_LAUNCH = {
  'local_mt': local_nodes.launch_threads,
  'local_mp': local_nodes.launch_processes,
}


@pytest.fixture(autouse=True)
def _without_launchpad(monkeypatch):
  monkeypatch.setenv(carriers.VARIABLE, carriers.GRPC)


def _plan_services(count):
  planned = program_lib.Program(float(_SECONDS))
  for index in range(count):
    plan = program_lib.PlannedNode(f'replay/{index}', conformance._Service)
    planned.add(plan)
  return planned


@pytest.fixture(name='nothing_left')
def _nothing_left():
  threads = threading.active_count()
  yield
  program.wait_until(
    lambda: (
      not psutil.Process().children(recursive=True)
      and threading.active_count() <= threads
    ),
    _SECONDS,
    'the end of all that was started',
  )


def test_nothing_of_launchpad_is_used(tmp_path):
  code = """
import sys
from repertory.launch.launchers import conformance, launcher, program
planned = program.Program(60.0)
planned.add(program.PlannedNode('replay', conformance._Service))
for name in ('local_mt', 'local_mp'):
  with launcher.get(name)().launch(planned, sys.argv[1]) as workers:
    client = workers.client('replay')
    assert client.double(21) == 42
    client.futures.shutdown().result(60)
    workers.wait_for_end(60)
ours = 'repertory.launch.launchers.'
print([n for n in ('launchpad', 'courier_servers') if ours + n in sys.modules])
"""
  ended = subprocess.run(
    [sys.executable, '-c', code, str(tmp_path)],
    check=True,
    stdout=subprocess.PIPE,
    text=True,
    timeout=2 * _SECONDS,
  )
  # Threads print here.
  assert ended.stdout == 'replay begins life 0\n[]\n'


def test_runs_in_another_thread_than_the_main_one(tmp_path):
  experiment = launch.make_experiment(
    'dqn',
    'catch',
    max_steps=500,
    num_actors=1,
    evaluation_episodes=0,
    directory=str(tmp_path / 'run'),
  )
  with concurrent.futures.ThreadPoolExecutor(1) as executor:
    call = executor.submit(
      launch.run, experiment, 'distributed', 'local_mp', display=False
    )
    assert call.result(4 * _SECONDS).status.steps == 500
  assert not psutil.Process().children(recursive=True)


def test_ports_of_services_are_theirs_to_the_end(tmp_path):
  planned = _plan_services(2)
  with local_nodes.launch_processes(planned, str(tmp_path)) as workers:
    numbers = []
    for name in planned.names:
      client = workers.client(name)
      calls.wait_for_server(client)
      numbers.append(int(client.address.split(':')[1]))
      client.futures.shutdown().result(_SECONDS)
    assert len(set(numbers)) == 2
    workers.wait_for_end(_SECONDS)
    assert set(workers.find_ended()) == set(planned.names)
    # Held by this process: so one that is started again finds it free.
    for number in numbers:
      assert list(interfaces._sockets_at(number))


def test_processes_print_to_the_files_of_their_nodes(tmp_path):
  planned = _plan_services(2)
  for _ in range(2):
    with local_nodes.launch_processes(planned, str(tmp_path)) as workers:
      for name in planned.names:
        client = workers.client(name)
        assert client.life() == 0
        client.futures.shutdown().result(_SECONDS)
      workers.wait_for_end(_SECONDS)
  for index in range(2):
    # That of the launch before was set aside.
    for suffix in ('', '.previous'):
      path = tmp_path / 'replay' / f'{index}{suffix}'
      assert path.read_text().endswith(f'replay/{index} begins life 0\n')
  assert sorted(path.name for path in tmp_path.iterdir()) == ['replay']


class _Failing:
  """Fails when it is called for the last time."""

  def __init__(self, real, num_calls):
    self._real = real
    self._num_left = num_calls

  def __call__(self, *arguments, **named):
    self._num_left -= 1
    if not self._num_left:
      raise OSError('no more')
    return self._real(*arguments, **named)


def _launch(name, planned, directory):
  with _LAUNCH[name](planned, str(directory)):
    raise AssertionError('It was launched.')


@pytest.mark.usefixtures('nothing_left')
class TestNothingIsLeft:
  def test_of_processes_of_which_one_cannot_be_started(
    self, monkeypatch, tmp_path
  ):
    failing = _Failing(child_processes.start, 3)
    monkeypatch.setattr(child_processes, 'start', failing)
    with pytest.raises(OSError, match='no more'):
      _launch('local_mp', _plan_services(3), tmp_path)

  def test_of_threads_of_which_one_cannot_be_started(
    self, monkeypatch, tmp_path
  ):
    start = threading.Thread.start
    failing = _Failing(start, 3)
    planned = _plan_services(3)

    def start_node(thread):
      (failing if thread.name in planned.names else start)(thread)

    monkeypatch.setattr(threading.Thread, 'start', start_node)
    with pytest.raises(OSError, match='no more'):
      _launch('local_mt', planned, tmp_path)

  @pytest.mark.parametrize(
    ('name', 'workers'),
    [('local_mt', 'Threads'), ('local_mp', 'Processes')],
  )
  def test_of_what_could_not_be_taken_over(
    self, name, workers, monkeypatch, tmp_path
  ):
    monkeypatch.setattr(local_workers, workers, _Failing(None, 1))
    with pytest.raises(OSError, match='no more'):
      _launch(name, _plan_services(2), tmp_path)

  @pytest.mark.parametrize('name', sorted(_LAUNCH))
  def test_when_ending_it_fails(self, name, monkeypatch, tmp_path):
    with (
      pytest.raises(OSError, match='no more'),
      _LAUNCH[name](_plan_services(2), str(tmp_path)) as workers,
    ):
      monkeypatch.setattr(workers, 'end', _Failing(None, 1))
