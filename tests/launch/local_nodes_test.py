"""Tests of nodes in threads and processes of this host."""

import concurrent.futures
import os
import subprocess
import sys

import psutil
import pytest

from repertory import launch
from repertory.components.network import network_interfaces
from repertory.launch.launchers import conformance, local_nodes, rpc
from repertory.launch.launchers import launcher as launcher_lib

_SECONDS = 60


def _plan(count):
  """Returns a graph of a number of service nodes, 'replay/0' and so on."""
  planned = launcher_lib.NodeGraph(60.0)
  for index in range(count):
    node = launcher_lib.PlannedNode(f'replay/{index}', conformance._Service)
    planned.add(node)
  return planned


def test_courier_is_not_imported_for_grpc(tmp_path):
  code = """
import sys
from repertory.launch.launchers import conformance, launcher
planned = launcher.NodeGraph(60.0)
planned.add(launcher.PlannedNode('replay', conformance._Service))
with launcher.get('local_mt')().launch(planned, sys.argv[1]) as workers:
  client = workers.client('replay')
  assert client.double(21) == 42
  client.futures.shutdown().result(60)
print('repertory.launch.launchers.courier_servers' in sys.modules)
"""
  ended = subprocess.run(
    [sys.executable, '-c', code, str(tmp_path)],
    env={**os.environ, rpc.VARIABLE: rpc.GRPC},
    check=True,
    stdout=subprocess.PIPE,
    text=True,
    timeout=2 * _SECONDS,
  )
  # Threads print here.
  assert ended.stdout == 'replay starts generation 0\nFalse\n'


@pytest.mark.chaos
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
  planned = _plan(2)
  with local_nodes.launch(
    planned, str(tmp_path), local_nodes.LocalProcesses
  ) as workers:
    numbers = set()
    for name in planned.names:
      client = workers.client(name)
      numbers.add(int(client.address.split(':')[1]))
      client.futures.shutdown().result(_SECONDS)
    assert len(numbers) == 2
    workers.wait_for_end(_SECONDS)
    # Reserved by this process, so a restarted service finds it free.
    for number in numbers:
      assert list(network_interfaces._sockets_at(number))
  for number in numbers:
    assert not list(network_interfaces._sockets_at(number))


def test_processes_print_to_the_files_of_their_nodes(tmp_path):
  planned = _plan(2)
  for _ in range(2):
    with local_nodes.launch(
      planned, str(tmp_path), local_nodes.LocalProcesses
    ) as workers:
      for name in planned.names:
        client = workers.client(name)
        assert client.context() == (0, True)
        client.futures.shutdown().result(_SECONDS)
      workers.wait_for_end(_SECONDS)
  for index in range(2):
    # That of the launch before was set aside.
    for suffix in ('', '.previous'):
      path = tmp_path / 'replay' / f'{index}{suffix}'
      assert f'replay/{index} starts generation 0\n' in path.read_text()
  assert sorted(path.name for path in tmp_path.iterdir()) == ['replay']
