"""Tests of what carries the calls of nodes, each way of them."""

import concurrent.futures
import contextlib
import gc
import importlib.util
import os
import subprocess
import sys
import threading

import numpy as np
import psutil
import pytest

import program
from repertory.components import interfaces, settings, signals
from repertory.launch.host import ports
from repertory.launch.launchers import calls, carriers

_SECONDS = 30.0
_THREADS = 4


class _Service:
  """Keeps calls waiting until it is told."""

  def __init__(self):
    self.release = threading.Event()
    self.waiting = threading.Semaphore(0)

  @property
  def served(self):
    return {
      'double': lambda x: 2 * x,
      'echo': lambda *arguments, **named: (arguments, named),
      'fail': self._fail,
      'wait': self._wait,
    }

  def _fail(self):
    raise signals.Stopped('It is over.')

  def _wait(self):
    self.waiting.release()
    assert self.release.wait(_SECONDS)
    return 'waited'

  def expect_waiting(self, count):
    for _ in range(count):
      assert self.waiting.acquire(timeout=_SECONDS)


@pytest.fixture(name='carrier')
def _carrier(each_carrier):
  return carriers.get(each_carrier)


@pytest.fixture(name='port')
def _port():
  with ports.held() as port:
    yield port


@pytest.fixture(name='service')
def _service():
  service = _Service()
  yield service
  service.release.set()


def _serving(carrier, port, service):
  server = carrier.make_server(port, _THREADS)
  return carrier.serving(server, service.served, lambda: None)


@pytest.fixture(name='client')
def _client(carrier, port, service):
  with _serving(carrier, port, service):
    yield carrier.make_client(f'localhost:{port}', _SECONDS)
    service.release.set()


@pytest.mark.parametrize('dtype', [np.float32, np.int64, np.uint8])
def test_numpy_arguments_come_back_within_the_deadline(client, dtype):
  # Some published versions of Launchpad never answer a call like this.
  array = np.arange(32 * 8).reshape(32, 8).astype(dtype)
  for _ in range(10):
    call = client.futures.double(array)
    done, _ = concurrent.futures.wait([call], timeout=_SECONDS)
    assert done, 'There was no answer.'
    result = call.result()
    np.testing.assert_array_equal(result, 2 * array)
    assert result.dtype == dtype


def test_arguments_arrive(client, port):
  assert client.address == f'localhost:{port}'
  assert client.double(21) == 42
  assert client.futures.double('ab').result(_SECONDS) == 'abab'
  arguments, named = client.echo(None, (1, 2.5), key={'a': b'b'})
  assert list(arguments) == [None, (1, 2.5)]
  assert named == {'key': {'a': b'b'}}


def test_messages_of_any_size(client):
  sent = os.urandom(1 << 20) * 40
  assert client.double(sent) == sent * 2


def test_what_a_node_raises_is_told_and_not_raised_again(client):
  for call in (client.fail, lambda: client.futures.fail().result(_SECONDS)):
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


def test_answers_that_take_too_long(carrier, client, port, service):
  hurried = carrier.make_client(f'localhost:{port}', 0.2)
  for call in (
    hurried.wait,
    lambda: hurried.futures.wait().result(_SECONDS),
  ):
    with pytest.raises(Exception, match=r'Deadline Exceeded|Waited 0\.\d'):
      call()
  service.release.set()
  assert client.wait() == 'waited'


def test_a_server_that_is_not_there(carrier, port):
  client = carrier.make_client(f'localhost:{port}', 0.5)
  with pytest.raises(Exception, match=r'Deadline Exceeded|Waited 0\.\d'):
    client.double(1)


def test_calls_that_wait_do_not_hold_up_others(client, service):
  waiting = [client.futures.wait() for _ in range(_THREADS - 1)]
  service.expect_waiting(_THREADS - 1)
  assert client.double(21) == 42
  service.release.set()
  assert {call.result(_SECONDS) for call in waiting} == {'waited'}


def test_a_call_that_is_canceled(client, service):
  call = client.futures.wait()
  service.expect_waiting(1)
  told = []
  call.add_done_callback(told.append)
  assert call.cancel()
  assert call.cancelled()
  assert told == [call]
  with pytest.raises(concurrent.futures.CancelledError):
    call.result(_SECONDS)
  assert client.double(21) == 42


def test_an_answer_can_no_longer_be_canceled(client):
  call = client.futures.double(21)
  assert call.result(_SECONDS) == 42
  assert not call.cancel()


def test_what_nobody_holds_is_called_all_the_same(carrier, client, port):
  held = carrier.make_client(f'localhost:{port}', _SECONDS)
  call = held.futures.double(21)
  assert call.result(_SECONDS) == 42
  del held
  gc.collect()
  assert client.double(21) == 42


def test_a_call_waits_for_a_server_that_is_started(carrier, port, service):
  client = carrier.make_client(f'localhost:{port}', _SECONDS)
  call = client.futures.double(21)
  assert not concurrent.futures.wait([call], timeout=0.5).done
  with _serving(carrier, port, service):
    assert call.result(_SECONDS) == 42


def test_a_server_that_is_started_again_is_found(carrier, port, service):
  client = carrier.make_client(f'localhost:{port}', _SECONDS)
  for number in range(3):
    with _serving(carrier, port, service):
      calls.wait_for_server(client)
      assert client.double(number) == 2 * number
    assert not calls.is_listening(client)


_KILLED = """
import os, sys, time
from repertory.launch.launchers import carriers
carrier = carriers.get(sys.argv[1])
port, seconds = map(int, sys.argv[2:])
def wait():
  print('called', flush=True)
  time.sleep(seconds)
  return os.getpid()
server = carrier.make_server(port, 4)
with carrier.serving(server, {'wait': wait}, lambda: None):
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
  carrier = carriers.get(each_carrier)
  client = carrier.make_client(f'localhost:{port}', 4 * _SECONDS)
  with concurrent.futures.ThreadPoolExecutor(1) as executor:
    with _killed(each_carrier, port, 60) as process:
      found = [client.futures.wait(), executor.submit(client.wait)]
      for _ in found:
        assert process.stdout.readline() == 'called\n'
    assert not concurrent.futures.wait(found, timeout=0.5).done
    with _killed(each_carrier, port, 0) as process:
      for call in found:
        assert call.result(_SECONDS) == process.pid


def test_a_call_whose_server_is_killed_can_be_canceled(each_carrier, port):
  carrier = carriers.get(each_carrier)
  client = carrier.make_client(f'localhost:{port}', 4 * _SECONDS)
  num_threads = threading.active_count()
  with _killed(each_carrier, port, 60) as process:
    call = client.futures.wait()
    assert process.stdout.readline() == 'called\n'
  assert not concurrent.futures.wait([call], timeout=0.5).done
  assert call.cancel()
  # Of what waits for the answer, too.
  program.wait_until(
    lambda: threading.active_count() <= num_threads, _SECONDS, 'all threads'
  )


def test_a_server_is_told_to_end(carrier, port):
  told = threading.Event()
  server = carrier.make_server(port, _THREADS)
  client = carrier.make_client(f'localhost:{port}', _SECONDS)
  with carrier.serving(server, {}, told.set):
    client.futures.shutdown().result(_SECONDS)
    assert told.is_set()


def test_nothing_is_left_of_a_server(carrier, port, service):
  num_threads, before = threading.active_count(), psutil.Process().num_fds()
  for _ in range(10):
    with _serving(carrier, port, service):
      client = carrier.make_client(f'localhost:{port}', _SECONDS)
      assert client.futures.double(1).result(_SECONDS) == 2
  program.wait_until(
    lambda: threading.active_count() <= num_threads, _SECONDS, 'all threads'
  )
  assert psutil.Process().num_fds() < before + 10


class TestGrpc:
  """What Courier does not do, or does otherwise."""

  @pytest.fixture(name='carrier')
  def _carrier(self):
    return carriers.get(carriers.GRPC)

  def test_listens_at_the_addresses_of_the_interface_alone(self, client, port):
    assert client.double(1) == 2
    listening = {
      connection.laddr.ip
      for connection in psutil.Process().net_connections('tcp')
      if connection.laddr.port == port
      and connection.status == psutil.CONN_LISTEN
    }
    expected = set(interfaces.addresses_to_bind(interfaces.LOOPBACK))
    assert {'127.0.0.1'} <= expected
    assert {ip.removeprefix('::ffff:') for ip in listening} == expected

  @pytest.mark.parametrize('address', ['127.0.0.1', '[::1]'])
  def test_is_reached_over_either_protocol(
    self, carrier, client, port, address
  ):
    if address.strip('[]') not in interfaces.addresses_to_bind(
      interfaces.LOOPBACK
    ):
      pytest.skip(f'This machine has no {address}.')
    direct = carrier.make_client(f'{address}:{port}', _SECONDS)
    assert direct.double(1) == client.double(1)

  def test_proxies_are_passed_by(self, carrier, client, port, monkeypatch):
    monkeypatch.setenv('http_proxy', 'http://127.0.0.1:1')
    monkeypatch.delenv('no_proxy', raising=False)
    direct = carrier.make_client(f'127.0.0.1:{port}', _SECONDS)
    assert direct.double(1) == 2
    del client

  def test_no_more_calls_at_once_than_threads(self, client, service):
    waiting = [client.futures.wait() for _ in range(_THREADS)]
    service.expect_waiting(_THREADS)
    late = client.futures.double(1)
    assert not concurrent.futures.wait([late], timeout=0.5).done
    service.release.set()
    assert late.result(_SECONDS) == 2
    assert {call.result(_SECONDS) for call in waiting} == {'waited'}

  def test_answers_that_cannot_be_sent_are_told(self, carrier, port):
    server = carrier.make_server(port, _THREADS)
    client = carrier.make_client(f'localhost:{port}', _SECONDS)
    with (
      carrier.serving(server, {'lock': threading.Lock}, lambda: None),
      pytest.raises(Exception, match='TypeError: cannot pickle'),
    ):
      client.lock()

  def test_a_call_that_hangs_keeps_no_server_and_no_process(self, port):
    code = f"""
import threading, time
from repertory.launch.launchers import grpc_servers
server = grpc_servers.make_server({port}, 2)
began = threading.Event()
def hang():
  began.set()
  time.sleep(600)
with grpc_servers.serving(server, {{'hang': hang}}, lambda: None):
  client = grpc_servers.make_client('localhost:{port}', 600)
  call = client.futures.hang()
  assert began.wait(60)
print(call.cancel())  # It waited for another server.
"""
    ended = subprocess.run(
      [sys.executable, '-c', code],
      check=True,
      capture_output=True,
      text=True,
      timeout=120,
    )
    assert (ended.stdout, ended.stderr) == ('True\n', '')

  def test_processes_can_be_forked_beside_it(self, client):
    with contextlib.ExitStack() as stack:
      stop = threading.Event()

      def call():
        while not stop.is_set():
          client.double(1)

      thread = threading.Thread(target=call)
      thread.start()
      stack.callback(thread.join)
      stack.callback(stop.set)
      for _ in range(20):
        child = os.fork()
        if not child:
          os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert client.double(1) == 2


class TestChoice:
  def test_courier_where_it_is_installed(self, monkeypatch):
    monkeypatch.delenv(carriers.VARIABLE, raising=False)
    is_there = importlib.util.find_spec('courier') is not None
    expected = carriers.COURIER if is_there else carriers.GRPC
    assert carriers.chosen() == expected

  def test_grpc_elsewhere(self, monkeypatch):
    monkeypatch.delenv(carriers.VARIABLE, raising=False)
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    assert carriers.chosen() == carriers.GRPC
    monkeypatch.setenv(carriers.VARIABLE, carriers.COURIER)
    with pytest.raises(settings.SettingError, match='without Launchpad'):
      carriers.chosen()

  def test_by_name(self, monkeypatch):
    monkeypatch.setenv(carriers.VARIABLE, carriers.GRPC)
    assert carriers.chosen() == carriers.GRPC
    monkeypatch.setenv(carriers.VARIABLE, 'pigeons')
    with pytest.raises(settings.SettingError, match="got 'pigeons'"):
      carriers.chosen()
