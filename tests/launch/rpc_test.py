"""Tests of both RPC libraries."""

import concurrent.futures
import contextlib
import importlib.util
import os
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest

from repertory import launch
from repertory.components.config import settings
from repertory.components.runtime import signals
from repertory.launch.launchers import calls, launcher, rpc
from support.launch import called
from support.system import program, stacks


@pytest.fixture(name='library')
def _carrier(each_carrier):
  return rpc.get(each_carrier)


def test_numpy_arguments_come_back_within_the_deadline(client):
  # Some published versions of Launchpad never answer a call like this.
  array = np.arange(32 * 8).reshape(32, 8).astype(np.uint8)
  result = client.futures.double(array).result(called.SECONDS)
  np.testing.assert_array_equal(result, 2 * array)
  assert result.dtype == np.uint8


def test_arguments_arrive(client, port):
  assert client.address == f'localhost:{port}'
  assert client.double(21) == 42
  assert client.futures.double('ab').result(called.SECONDS) == 'abab'
  arguments, named = client.echo(None, (1, 2.5), key={'a': b'b'})
  assert list(arguments) == [None, (1, 2.5)]
  assert named == {'key': {'a': b'b'}}


def test_messages_of_any_size(client):
  sent = os.urandom(1 << 20) * 40
  assert client.double(sent) == sent * 2


def test_exception_of_a_node_is_described_and_not_raised_again(client):
  for call in (
    client.fail,
    lambda: client.futures.fail().result(called.SECONDS),
  ):
    # Who calls is not the one that was stopped.
    with pytest.raises(Exception, match='Stopped: It is over') as failure:
      call()
    assert not isinstance(failure.value, signals.Stopped)
    assert str(failure.value).strip().endswith('Stopped: It is over.')
    assert '_fail' in str(failure.value)


def test_what_is_not_served(client):
  with pytest.raises(Exception, match='not found'):
    client.treble(1)
  assert client.double(1) == 2


def test_answers_that_take_too_long(library, client, port, service):
  hurried = library.make_client(f'localhost:{port}', 0.2, called.TOKEN)
  for call in (
    hurried.wait,
    lambda: hurried.futures.wait().result(called.SECONDS),
  ):
    with pytest.raises(Exception, match=r'Deadline Exceeded|Waited 0\.\d'):
      call()
  service.release.set()
  assert client.wait() == 'waited'


def test_a_call_that_is_canceled(client, service):
  call = client.futures.wait()
  service.expect_waiting(1)
  received = []
  call.add_done_callback(received.append)
  assert call.cancel()
  assert call.cancelled()
  assert received == [call]
  with pytest.raises(concurrent.futures.CancelledError):
    call.result(called.SECONDS)
  for i in range(200):  # Nor does one crash whose reply arrives meanwhile.
    call, end = client.futures.double(21), time.perf_counter() + i * 1e-6
    while not call.done() and time.perf_counter() < end:
      pass
    call.cancel()
  assert client.double(21) == 42


def test_a_server_that_is_started_again_is_found(library, port, service):
  client = library.make_client(
    f'localhost:{port}', called.SECONDS, called.TOKEN
  )
  for number in range(3):
    with called.serving(library, port, service):
      calls.wait_for_server(client)
      assert client.double(number) == 2 * number
    assert not calls.is_listening(client)


_KILLED = """
import os, sys, time
from repertory.launch.launchers import rpc
carrier = rpc.get(sys.argv[1])
port, seconds = map(int, sys.argv[2:])
def wait():
  os.write(1, b'called\\n')  # In one piece, beside other threads.
  time.sleep(seconds)
  return os.getpid()
with carrier.serving(
  port, {'wait': wait}, num_threads=4, token='the token'
):
  print('ready', flush=True)
  time.sleep(60)
"""


@contextlib.contextmanager
def _killed(carrier_name, port, seconds):
  """Yields a server in a process that is killed at the end of the block."""
  command = [sys.executable, '-c', _KILLED, carrier_name, str(port)]
  with subprocess.Popen(
    [*command, str(seconds)], stdout=subprocess.PIPE, text=True
  ) as process:
    try:
      assert process.stdout.readline() == 'ready\n'
      yield process
    finally:
      process.kill()


def test_a_call_whose_server_is_killed_goes_to_the_next(each_carrier, port):
  library = rpc.get(each_carrier)
  client = library.make_client(
    f'localhost:{port}', 4 * called.SECONDS, called.TOKEN
  )
  with concurrent.futures.ThreadPoolExecutor(1) as executor:
    with _killed(each_carrier, port, 60) as process:
      found = [client.futures.wait(), executor.submit(client.wait)]
      canceled = client.futures.wait()
      for _ in range(3):
        assert process.stdout.readline() == 'called\n'
    assert not concurrent.futures.wait(found, timeout=0.5).done
    assert canceled.cancel()
    with _killed(each_carrier, port, 0) as process:
      for call in found:
        assert call.result(called.SECONDS) == process.pid


def test_nothing_is_left_of_a_server(library, port, service):
  num_threads, before = threading.active_count(), psutil.Process().num_fds()
  for _ in range(10):
    with called.serving(library, port, service):
      client = library.make_client(
        f'localhost:{port}', called.SECONDS, called.TOKEN
      )
      assert client.futures.double(1).result(called.SECONDS) == 2
  program.wait_until(
    lambda: threading.active_count() <= num_threads,
    called.SECONDS,
    'all threads',
  )
  assert psutil.Process().num_fds() < before + 10


class TestChoice:
  def test_courier_where_it_is_installed(self, monkeypatch):
    monkeypatch.delenv(rpc.VARIABLE, raising=False)
    expected = rpc.COURIER if stacks.HAS_LAUNCHPAD else rpc.GRPC
    assert rpc.chosen() == expected

  def test_grpc_elsewhere(self, monkeypatch):
    """Though there may be another package of Courier's name."""
    monkeypatch.delenv(rpc.VARIABLE, raising=False)
    find = importlib.util.find_spec
    others = {'launchpad': 'no such module', 'courier': 'json'}
    monkeypatch.setattr(
      importlib.util, 'find_spec', lambda name: find(others.get(name, name))
    )
    assert rpc.chosen() == rpc.GRPC
    monkeypatch.setenv(rpc.VARIABLE, rpc.COURIER)
    with pytest.raises(settings.SettingError, match='without Launchpad'):
      rpc.chosen()

  @pytest.mark.parametrize('launch_type', sorted(launcher.launchers()))
  def test_is_checked_before_anything_is_written(
    self, launch_type, monkeypatch, tmp_path
  ):
    monkeypatch.setenv(rpc.VARIABLE, 'pigeons')
    experiment = launch.make_experiment(
      'dqn', 'catch', max_steps=100, directory=str(tmp_path / 'run')
    )
    with pytest.raises(settings.SettingError, match="got 'pigeons'"):
      launch.run(experiment, 'distributed', launch_type, display=False)
    assert not list(tmp_path.iterdir())
