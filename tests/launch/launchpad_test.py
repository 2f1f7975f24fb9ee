"""Tests of nodes started by Launchpad, and of their end."""

import concurrent.futures
import sys
import tempfile
import threading

import pytest

from repertory import launch
from repertory.components.config import settings
from repertory.launch import launchers
from repertory.launch.launchers import node_graph
from repertory.launch.running import conformance
from support.launch import services
from support.system import stacks

worker_manager = pytest.importorskip(
  'launchpad.launch.worker_manager', reason=stacks.NO_LAUNCHPAD
)
launchpad = launchers.launchpad


def test_is_refused_outside_the_main_thread(tmp_path):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1000, directory=str(tmp_path / 'run')
  )
  with concurrent.futures.ThreadPoolExecutor(1) as executor:
    call = executor.submit(launch.run, experiment, 'distributed')
    with pytest.raises(settings.SettingError) as refusal:
      call.result(services.SECONDS)
  assert refusal.value.setting == 'launch_type'
  assert "main thread, got 'local_mt' in another" in refusal.value.problem
  assert not (tmp_path / 'run').exists()


def test_ports_of_services_are_theirs_to_the_end(tmp_path):
  services.check_ports(launchpad.LaunchpadProcesses().launch, tmp_path)


def test_nodes_in_threads_print_and_write_where_the_program_does(
  tmp_path, monkeypatch
):
  found, is_made = [], threading.Event()

  def make(context):
    found.append((sys.stdout, tempfile.gettempdir()))
    is_made.set()
    return conformance._Service(context)

  def start_and_wait(*arguments, **named):
    start(*arguments, **named)
    assert is_made.wait(services.SECONDS)

  start = worker_manager.WorkerManager.thread_worker
  monkeypatch.setattr(
    worker_manager.WorkerManager, 'thread_worker', start_and_wait
  )
  planned = node_graph.NodeGraph(float(services.SECONDS))
  planned.add(node_graph.PlannedNode('replay/0', make))
  with launchpad.LaunchpadThreads().launch(planned, str(tmp_path)):
    pass
  assert found == [(sys.stdout, tempfile.gettempdir())]


class _Managers:
  """Records Launchpad's worker managers."""

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
  services.wait_for_end(threads)
  assert managers.made
  for manager in managers.made:
    assert not any(manager._active_workers.values())  # Else exit would wait.
  assert worker_manager.WorkerManager is original
  assert not (tmp_path / '.programs').exists()


@pytest.mark.parametrize(
  'kind', [launchpad.LaunchpadThreads, launchpad.LaunchpadProcesses]
)
@pytest.mark.usefixtures('nothing_left')
class TestNothingIsLeft:
  def test_of_a_start_that_fails_in_between(self, kind, monkeypatch, tmp_path):
    planned = services.plan(3)
    made = {'local_mt': 'thread_worker', 'local_mp': 'process_worker'}[
      kind.launch_type
    ]
    real = getattr(worker_manager.WorkerManager, made)
    failing = services.Failing(real, 3)
    monkeypatch.setattr(
      worker_manager.WorkerManager,
      made,
      lambda *arguments, **named: failing(*arguments, **named),
    )
    with pytest.raises(OSError, match='no more'):
      services.launch_in_vain(kind().launch, planned, tmp_path)

  def test_of_nodes_without_workers(self, kind, monkeypatch, tmp_path):
    monkeypatch.setattr(kind, '_take', services.Failing(None, 1))
    with pytest.raises(OSError, match='no more'):
      services.launch_in_vain(kind().launch, services.plan(2), tmp_path)

  def test_when_ending_it_fails(self, kind, monkeypatch, tmp_path):
    launcher = kind()
    with (
      pytest.raises(OSError, match='no more'),
      launcher.launch(services.plan(2), str(tmp_path)) as workers,
    ):
      monkeypatch.setattr(workers, 'end', services.Failing(None, 1))
