"""Tests of what Launchpad starts, and of what becomes of it."""

import concurrent.futures
import threading

import psutil
import pytest

import program
import stacks
from repertory import launch
from repertory.components import interfaces, settings
from repertory.launch import launchers
from repertory.launch.launchers import calls, conformance
from repertory.launch.launchers import program as program_lib

worker_manager = pytest.importorskip(
  'launchpad.launch.worker_manager', reason=stacks.NO_LAUNCHPAD
)
launchpad = launchers.launchpad

_SECONDS = 60


def _plan_services(count):
  planned = program_lib.Program(float(_SECONDS))
  for index in range(count):
    plan = program_lib.PlannedNode(f'replay/{index}', conformance._Service)
    planned.add(plan)
  return planned


def test_is_refused_outside_the_main_thread(tmp_path):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1000, directory=str(tmp_path / 'run')
  )
  with concurrent.futures.ThreadPoolExecutor(1) as executor:
    call = executor.submit(launch.run, experiment, 'distributed')
    with pytest.raises(settings.SettingError) as refusal:
      call.result(_SECONDS)
  assert refusal.value.setting == 'launch_type'
  assert "main thread, got 'local_mt' in another" in refusal.value.problem
  assert not (tmp_path / 'run').exists()


def test_ports_of_services_are_theirs_to_the_end(tmp_path):
  planned = _plan_services(2)
  launcher = launchpad.Processes()
  with launcher.launch(planned, str(tmp_path)) as workers:
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
  for number in numbers:
    assert not list(interfaces._sockets_at(number))


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


class _Managers:
  """Notes all that Launchpad manages nodes with."""

  def __init__(self, monkeypatch):
    self.made = []
    init = worker_manager.WorkerManager.__init__

    def noting(manager, *arguments, **named):
      init(manager, *arguments, **named)
      self.made.append(manager)

    monkeypatch.setattr(worker_manager.WorkerManager, '__init__', noting)


@pytest.fixture(name='nothing_left')
def _nothing_left(monkeypatch, tmp_path):
  """Checks that nothing is there in the end that was not in the beginning."""
  managers, threads = _Managers(monkeypatch), threading.active_count()
  original = worker_manager.WorkerManager
  yield
  program.wait_until(
    lambda: (
      not psutil.Process().children(recursive=True)
      and threading.active_count() <= threads
    ),
    _SECONDS,
    'the end of all that was started',
  )
  assert managers.made
  for manager in managers.made:
    assert not any(manager._active_workers.values())  # Else exit would wait.
  assert worker_manager.WorkerManager is original
  assert not (tmp_path / '.programs').exists()


def _launch(launcher, planned, directory):
  with launcher.launch(planned, str(directory)):
    raise AssertionError('It was launched.')


@pytest.mark.parametrize('kind', [launchpad.Threads, launchpad.Processes])
@pytest.mark.usefixtures('nothing_left')
class TestNothingIsLeft:
  def test_of_a_start_that_fails_in_between(self, kind, monkeypatch, tmp_path):
    planned = _plan_services(3)
    made = {'local_mt': 'thread_worker', 'local_mp': 'process_worker'}[
      kind.launch_type
    ]
    real = getattr(worker_manager.WorkerManager, made)
    failing = _Failing(real, 3)
    monkeypatch.setattr(
      worker_manager.WorkerManager,
      made,
      lambda *arguments, **named: failing(*arguments, **named),
    )
    with pytest.raises(OSError, match='no more'):
      _launch(kind(), planned, tmp_path)

  def test_of_what_could_not_be_taken_over(self, kind, monkeypatch, tmp_path):
    monkeypatch.setattr(kind, '_take', _Failing(None, 1))
    with pytest.raises(OSError, match='no more'):
      _launch(kind(), _plan_services(2), tmp_path)

  def test_when_ending_it_fails(self, kind, monkeypatch, tmp_path):
    launcher = kind()
    with (
      pytest.raises(OSError, match='no more'),
      launcher.launch(_plan_services(2), str(tmp_path)) as workers,
    ):
      monkeypatch.setattr(workers, 'end', _Failing(None, 1))
