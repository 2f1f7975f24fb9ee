"""Tests of RPC by gRPC that differ from Courier."""

import concurrent.futures
import os
import subprocess
import sys
import threading

import psutil
import pytest

from repertory.components.network import network_interfaces
from repertory.launch.launchers import grpc_servers, rpc
from support.launch import called
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


def test_proxies_are_passed_by(library, client, port, monkeypatch):
  monkeypatch.setenv('http_proxy', 'http://127.0.0.1:1')
  monkeypatch.delenv('no_proxy', raising=False)
  direct = library.make_client(
    f'127.0.0.1:{port}', called.SECONDS, called.TOKEN
  )
  assert direct.double(1) == 2
  del client


def test_replies_that_cannot_be_sent_are_reported(library, port):
  client = library.make_client(
    f'localhost:{port}', called.SECONDS, called.TOKEN
  )
  with (
    called.serving(library, port, {'lock': threading.Lock}),
    pytest.raises(Exception, match='TypeError: cannot pickle'),
  ):
    client.lock()


def test_a_call_that_hangs_keeps_no_server_and_no_process(port):
  code = f"""
import threading, time
from repertory.launch.launchers import grpc_servers
began = threading.Event()
def hang():
  began.set()
  time.sleep(600)
with grpc_servers.serving(
  {port}, {{'hang': hang}}, num_threads=2, token='token'
):
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

  with (
    links.Link(port) as link,
    called.serving(library, port, {'count': count}),
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
    with pytest.raises(Exception, match=r'UNAUTHENTICATED: .*the token'):
      stranger.echo(_Trap(path))
  assert not path.exists()
  client.echo(_Trap(path))
  assert path.exists()


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


def test_latest_replies_are_kept_unless_they_are_large(monkeypatch):
  monkeypatch.setattr(grpc_servers, '_NUM_KEPT', 2)
  replies = grpc_servers.ReplyCache()
  large = bytes(grpc_servers._LARGEST_BYTES + 1)
  for call, reply in (('a', b'a'), ('b', b'b'), ('large', large), ('c', b'c')):
    assert replies.get(call, lambda reply=reply: reply) == reply
  for call, reply in (('c', b'c'), ('b', b'b'), ('a', b'new'), ('large', b'')):
    new = b'' if call == 'large' else b'new'
    assert replies.get(call, lambda new=new: new) == reply
