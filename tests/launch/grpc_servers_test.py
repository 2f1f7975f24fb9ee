"""Tests of RPC by gRPC that differ from Courier."""

import concurrent.futures
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import types

import psutil
import pytest

from repertory.components.runtime import network_interfaces
from repertory.launch.launchers import rpc
from support.launch import called, services
from support.system import links, program


@pytest.fixture(name='library')
def _carrier():
  return rpc.get(rpc.GRPC)


def test_listens_at_the_addresses_of_the_interface_alone(client, port):
  assert client.double(1) == 2
  listening = {
    connection.laddr.ip
    for connection in psutil.Process().net_connections('tcp')
    if connection.laddr.port == port and connection.status == psutil.CONN_LISTEN
  }
  expected = set(
    network_interfaces.addresses_to_bind(network_interfaces.LOOPBACK)
  )
  assert {'127.0.0.1'} <= expected
  assert {ip.removeprefix('::ffff:') for ip in listening} == expected


@pytest.mark.parametrize('address', ['127.0.0.1', '[::1]'])
def test_is_reached_over_either_protocol(library, client, port, address):
  if address.strip('[]') not in network_interfaces.addresses_to_bind(
    network_interfaces.LOOPBACK
  ):
    pytest.skip(f'This machine has no {address}.')
  direct = library.make_client(
    f'{address}:{port}', called.SECONDS, called.TOKEN
  )
  assert direct.double(1) == client.double(1)


def test_proxies_are_passed_by(library, client, port, monkeypatch):
  monkeypatch.setenv('http_proxy', 'http://127.0.0.1:1')
  monkeypatch.delenv('no_proxy', raising=False)
  direct = library.make_client(
    f'127.0.0.1:{port}', called.SECONDS, called.TOKEN
  )
  assert direct.double(1) == 2
  del client


def test_no_more_calls_at_once_than_threads(client, service):
  waiting = [client.futures.wait() for _ in range(called.NUM_THREADS)]
  service.expect_waiting(called.NUM_THREADS)
  late = client.futures.double(1)
  assert not concurrent.futures.wait([late], timeout=0.5).done
  service.release.set()
  assert late.result(called.SECONDS) == 2
  assert {call.result(called.SECONDS) for call in waiting} == {'waited'}


def test_replies_that_cannot_be_sent_are_reported(library, port):
  server = library.make_server(port, called.NUM_THREADS, called.TOKEN)
  client = library.make_client(
    f'localhost:{port}', called.SECONDS, called.TOKEN
  )
  with (
    library.serving(server, {'lock': threading.Lock}, lambda: None),
    pytest.raises(Exception, match='TypeError: cannot pickle'),
  ):
    client.lock()


def test_a_call_that_hangs_keeps_no_server_and_no_process(port):
  code = f"""
import threading, time
from repertory.launch.launchers import grpc_servers
server = grpc_servers.make_server({port}, 2, 'token')
began = threading.Event()
def hang():
  began.set()
  time.sleep(600)
with grpc_servers.serving(server, {{'hang': hang}}, lambda: None):
  client = grpc_servers.make_client('localhost:{port}', 600, 'token')
  call = client.futures.hang()
  assert began.wait(60)
print(call.cancel())  # It waited for another server.
"""
  ended = subprocess.run(
    [sys.executable, '-c', code],
    # Courier, where it is, loads a library of TensorFlow, which says so.
    env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'},
    check=True,
    capture_output=True,
    text=True,
    timeout=120,
  )
  assert (ended.stdout, ended.stderr) == ('True\n', '')


def test_a_call_outlives_its_client(library, client, port, service):
  held = library.make_client(f'localhost:{port}', called.SECONDS, called.TOKEN)
  call = held.futures.wait()
  service.expect_waiting(1)
  del held
  gc.collect()
  assert client.double(21) == 42
  service.release.set()
  assert call.result(called.SECONDS) == 'waited'


def _exit_code_of(child):
  """Returns the exit code of a child, which is killed after a time-out."""
  ended = []

  def has_ended():
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid:
      ended.append(os.waitstatus_to_exitcode(status))
    return bool(pid)

  try:
    program.wait_until(has_ended, called.SECONDS, 'the child')
  finally:
    if not ended:
      os.kill(child, signal.SIGKILL)
      os.waitpid(child, 0)
  return ended[0]


def test_processes_can_be_forked_beside_it(client):
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
      assert _exit_code_of(child) == 7
  assert client.double(1) == 2


@pytest.mark.parametrize('is_answered', [False, True])
def test_a_call_whose_connection_is_cut_is_made_once(
  library, port, is_answered
):
  made, release = [], threading.Event()
  began = threading.Semaphore(0)

  def count():
    began.release()
    assert release.wait(called.SECONDS)
    made.append(1)
    return len(made)

  server = library.make_server(port, called.NUM_THREADS, called.TOKEN)
  with (
    links.Link(port) as link,
    library.serving(server, {'count': count}, lambda: None),
    concurrent.futures.ThreadPoolExecutor(1) as executor,
  ):
    client = library.make_client(
      f'localhost:{link.port}', called.SECONDS, called.TOKEN
    )
    found = [client.futures.count(), executor.submit(client.count)]
    for _ in found:
      assert began.acquire(timeout=called.SECONDS)
    assert link.carried.acquire(timeout=called.SECONDS)
    if is_answered:  # And the answer is lost.
      link.fall_silent()
      release.set()
      program.wait_until(lambda: len(made) == 2, called.SECONDS, 'both calls')
    link.cut()
    assert link.carried.acquire(timeout=called.SECONDS)
    release.set()
    # Each was counted, and the second one as such.
    assert sorted(call.result(called.SECONDS) for call in found) == [1, 2]
  assert len(made) == 2


class _Trap:
  """Creates a folder when it is unpickled."""

  def __init__(self, path):
    self._path = str(path)

  def __reduce__(self):
    return os.mkdir, (self._path,)


def test_nothing_is_read_of_who_does_not_know_the_token(
  library, client, port, tmp_path
):
  path, other = tmp_path / 'sprung', called.TOKEN + 'x'
  for token in ('', other, other[:-2]):
    stranger = library.make_client(f'localhost:{port}', called.SECONDS, token)
    for call in (
      lambda stranger=stranger: stranger.echo(_Trap(path)),
      lambda stranger=stranger: stranger.futures.echo(_Trap(path)).result(),
      stranger.shutdown,
    ):
      with pytest.raises(Exception, match=r'UNAUTHENTICATED: .*the token'):
        call()
  assert not path.exists()
  client.echo(_Trap(path))
  assert path.exists()


# Sends a large message with a token, and prints the result.
_SEND = """
import sys
from repertory.launch.launchers import grpc_servers
address, token, size = sys.argv[1:]
client = grpc_servers.make_client(address, 30.0, token)
try:
  print(len(client.echo(b'x' * int(size))[0][0]))
except grpc_servers.CallError as error:
  print(error)
"""


def test_large_messages_without_the_token_take_no_memory(client, port):
  client.double(1)  # What the first call takes.
  size, process = 200 << 20, psutil.Process()

  def send(token):
    """Returns the result, and the memory growth of this process."""
    before = most = process.memory_info().rss
    with subprocess.Popen(
      [sys.executable, '-c', _SEND, f'localhost:{port}', token, str(size)],
      stdout=subprocess.PIPE,
      text=True,
    ) as sender:
      while sender.poll() is None:
        most = max(most, process.memory_info().rss)
        time.sleep(0.005)
      assert sender.stdout is not None
      return sender.stdout.read().strip(), most - before

  printed, grown = send(called.TOKEN + 'x')
  assert 'UNAUTHENTICATED: Callers must have the token' in printed
  assert grown < 40 << 20
  printed, grown = send(called.TOKEN)
  assert printed == str(size)
  assert grown > size


def _expect_failure(client, method, message):
  for call in (
    getattr(client, method),
    lambda: getattr(client.futures, method)().result(called.SECONDS),
  ):
    with pytest.raises(Exception, match=message):
      call()


def test_says_why_there_was_no_answer(library, port, service):
  client = library.make_client(f'localhost:{port}', 1.0, called.TOKEN)
  with called.serving(library, port, service):
    _expect_failure(client, 'wait', r'Waited 1 seconds for a reply\.$')
    service.release.set()
    assert client.wait() == 'waited'
  _expect_failure(
    client, 'wait', r'Waited 1 seconds for a reply; no server is listening\.$'
  )


def test_says_how_the_connection_was_lost(library, port, service):
  with (
    contextlib.ExitStack() as stack,
    concurrent.futures.ThreadPoolExecutor(1) as executor,
  ):
    stack.enter_context(called.serving(library, port, service))
    link = stack.enter_context(links.Link(port))
    client = library.make_client(f'localhost:{link.port}', 5.0, called.TOKEN)
    found = [client.futures.wait(), executor.submit(client.wait)]
    service.expect_waiting(len(found))
    link.cut()
    for call in found:
      with pytest.raises(
        Exception,
        match=r'Waited 5 .*; an earlier connection was lost: \w.*\.$',
      ):
        call.result(called.SECONDS)
    service.release.set()


def test_nothing_is_left_of_a_server_that_cannot_listen(
  library, port, service, monkeypatch
):
  # The first can be bound, the last is nobody's: of TEST-NET-1.
  addresses = ['127.0.0.1', '192.0.2.1']
  monkeypatch.setattr(
    network_interfaces, 'addresses_to_bind', lambda _: addresses
  )
  before = psutil.Process().num_fds()
  for _ in range(10):
    with (
      pytest.raises(RuntimeError, match='Failed to bind'),
      called.serving(library, port, service),
    ):
      pass
    assert not list(network_interfaces._sockets_at(port))[1:]
  assert psutil.Process().num_fds() < before + 10


def test_a_call_that_cannot_be_repeated_fails(library, port, service):
  with called.serving(library, port, service), links.Link(port) as link:
    client = library.make_client(
      f'localhost:{link.port}', called.SECONDS, called.TOKEN
    )
    failing = services.Failing(client._stub('wait').future, 2)
    client._stubs['wait'] = types.SimpleNamespace(future=failing)
    call = client.futures.wait()
    service.expect_waiting(1)
    link.cut()
    with pytest.raises(OSError, match='no more'):
      call.result(called.SECONDS)


def _hurry(options):
  """Returns options with more frequent keepalive pings."""
  return tuple(
    (name, number // 10 if 'ping' in name or 'keepalive' in name else number)
    for name, number in options
  )


@pytest.mark.chaos
def test_a_host_that_is_gone_without_a_word_is_noticed(
  library, port, service, monkeypatch
):
  for name in ('_SERVER_OPTIONS', '_CLIENT_OPTIONS'):
    monkeypatch.setattr(library, name, _hurry(getattr(library, name)))
  with called.serving(library, port, service), links.Link(port) as link:
    client = library.make_client(
      f'localhost:{link.port}', 4 * called.SECONDS, called.TOKEN
    )
    call = client.futures.wait()
    service.expect_waiting(1)
    assert link.carried.acquire(timeout=called.SECONDS)
    # It may be asked as often as that takes.
    assert not link.carried.acquire(timeout=25)
    link.fall_silent()
    assert link.carried.acquire(timeout=called.SECONDS)
    service.release.set()
    assert call.result(called.SECONDS) == 'waited'
