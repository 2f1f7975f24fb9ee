"""RPC by plain gRPC: servers and clients.

A call is one pickled message in each direction, without a size limit. The
metadata with the token arrive first; without it, the message is not received.
"""

import collections
import contextlib
import functools
import hmac
import json
import os
import queue
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import Any

import cloudpickle

from repertory.components.network import network_interfaces
from repertory.launch.launchers import calls

# Read when gRPC is imported. By default, gRPC would delay each fork, although
# no child uses it, and log the end of each server.
os.environ.setdefault('GRPC_ENABLE_FORK_SUPPORT', '0')
os.environ.setdefault('GRPC_VERBOSITY', 'ERROR')

import grpc

_SERVICE = 'repertory'

# Metadata keys of a call: the token, and the id of the call, which is the same
# for retries.
_TOKEN, _CALL = 'token', 'call'

_RETRIES = {
  'name': [{}],  # All methods.
  'retryPolicy': {
    'maxAttempts': 5,  # The most that gRPC allows.
    'initialBackoff': '0.1s',
    'maxBackoff': '0.5s',
    'backoffMultiplier': 2,
    'retryableStatusCodes': ['UNAVAILABLE'],
  },
}

_ANY_SIZE = (
  ('grpc.max_send_message_length', -1),
  ('grpc.max_receive_message_length', -1),
)
_SERVER_OPTIONS = (
  *_ANY_SIZE,
  ('grpc.so_reuseport', 0),  # Two servers must never share a port.
  # A server closes connections with more frequent keepalive pings than this.
  ('grpc.http2.min_ping_interval_without_data_ms', 10_000),
)
_CLIENT_OPTIONS = (
  *_ANY_SIZE,
  ('grpc.enable_http_proxy', 0),  # A proxy would not find nodes.
  # Reconnect backoff, for restarted nodes; gRPC's default grows to two minutes.
  ('grpc.initial_reconnect_backoff_ms', 100),
  ('grpc.max_reconnect_backoff_ms', 500),
  # Time-out of connecting, instead of 20 s: a host may have vanished.
  ('grpc.min_reconnect_backoff_ms', 5000),
  # Keepalive pings during calls, since a host may vanish: period, no maximum
  # number, and time-out, whose name differs between versions of gRPC.
  ('grpc.keepalive_time_ms', 30_000),
  ('grpc.http2.max_pings_without_data', 0),
  ('grpc.http2.ping_timeout_ms', 20_000),
  ('grpc.keepalive_timeout_ms', 20_000),
  # A call whose connection is lost is retried. If the server was lost, a
  # restarted server handles the retry, as with Courier; otherwise the server
  # recognizes the call, see `ReplyCache`.
  ('grpc.service_config', json.dumps({'methodConfig': [_RETRIES]})),
  ('grpc.per_rpc_retry_buffer_size', 2**31 - 1),
)

# Number of latest replies that are kept, and their maximum size. A thousand
# actors make this many calls to the coordinator within 5 seconds, 16 within
# minutes.
_NUM_KEPT = 20_000
_LARGEST_BYTES = 4096


class CallError(Exception):
  """Failure of a call: the server raised an exception, or did not reply.

  The server's exception is not raised in the caller; the message has its
  traceback.
  """


@contextlib.contextmanager
def serving(
  port: int,
  served: Mapping[str, Callable[..., Any]],
  *,
  num_threads: int,
  token: str,
  interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
) -> Iterator[None]:
  """Serves calls while the block runs.

  Args:
    port: Port of the server.
    served: Served methods, by name.
    num_threads: Maximum concurrent calls.
    token: Secret that authenticates callers.
    interface: Network interface to serve on.

  Raises:
    RuntimeError: If the port is in use.
  """
  replies = ReplyCache()

  def handle(method: str, request: bytes, context: Any) -> bytes:
    """Handles a call; a retried call gets the reply of the first."""
    call = dict(context.invocation_metadata())[_CALL]
    return replies.get(call, lambda: _reply(served[method], request))

  handlers = {
    f'/{_SERVICE}/{name}': grpc.unary_unary_rpc_method_handler(
      functools.partial(handle, name)
    )
    for name in served
  }
  threads: Any = _DaemonThreads(num_threads)
  listener = grpc.server(
    threads,
    handlers=[_Admitting(handlers, token.encode())],
    options=_SERVER_OPTIONS,
  )
  try:
    try:
      for address in network_interfaces.addresses_to_bind(interface):
        bound = network_interfaces.Interface(address, interface.names)
        listener.add_insecure_port(bound.address(port))
      network_interfaces.restrict(port, interface)
    finally:
      listener.start()  # Only a started server closes its ports.
    yield
  finally:
    listener.stop(1.0).wait(5.0)
    threads.shutdown()


class _Admitting(grpc.GenericRpcHandler):
  """Checks the token of a call before its message is received.

  Receiving a message allocates its size, and unpickling it may run any code.
  """

  def __init__(self, handlers: Mapping[str, Any], token: bytes):
    self._handlers = handlers
    self._token = token
    # Of a stream: others receive the message before they are called.
    self._refusing = grpc.stream_unary_rpc_method_handler(_refuse)

  def service(self, handler_call_details: Any) -> Any:
    """Returns the gRPC handler of a method; None if there is no such method."""
    metadata = dict(handler_call_details.invocation_metadata)
    token = metadata.get(_TOKEN, '').encode()
    if not hmac.compare_digest(token, self._token):
      return self._refusing
    return self._handlers.get(handler_call_details.method)


def _refuse(requests: Any, context: Any) -> None:
  del requests  # Messages of a stream are received when iterated over.
  context.abort(
    grpc.StatusCode.UNAUTHENTICATED, 'Callers must have the token of the run.'
  )


def _reply(method: Callable[..., Any], request: bytes) -> bytes:
  """Runs a call; returns a pickled pair of success and result."""
  try:
    arguments, named = cloudpickle.loads(request)
    return _pickle((True, method(*arguments, **named)))
  except BaseException as error:
    trace = ''.join(traceback.format_exception(error))
    return _pickle(
      (False, f'Python exception was raised on the server:\n{trace}')
    )


def _pickle(value: Any) -> bytes:
  return cloudpickle.dumps(value, protocol=5)


class ReplyCache:
  """Cache of replies to the latest calls, so that retries do not run twice.

  A client that loses its connection cannot know whether the server received the
  call, so it retries, and gets the reply to the first: the steps of one report
  must not be counted twice. Large replies, such as variables, are not kept;
  their calls change nothing and may run again.
  """

  def __init__(self):
    self._lock = threading.Lock()
    self._replies: dict[str, futures.Future[bytes]] = {}
    self._kept: collections.deque[str] = collections.deque()

  def get(self, call: str, make: Callable[[], bytes]) -> bytes:
    """Returns the reply to a call, waiting for it if the call is pending."""
    with self._lock:
      is_new = call not in self._replies
      reply = self._replies.setdefault(call, futures.Future())
    if is_new:
      reply.set_result(make())
      with self._lock:
        self._kept.append(call)
        if len(reply.result()) > _LARGEST_BYTES:
          del self._replies[self._kept.pop()]
        elif len(self._kept) > _NUM_KEPT:
          del self._replies[self._kept.popleft()]
    return reply.result()


class _DaemonThreads(futures.Executor):
  """Thread pool whose hanging calls do not keep Python from exiting."""

  def __init__(self, most: int):
    self._most = most
    self._tasks: queue.SimpleQueue = queue.SimpleQueue()
    self._idle = threading.Semaphore(0)
    self._threads: list[threading.Thread] = []

  def submit(self, function, /, *arguments, **named):
    """Runs a function in the pool; gRPC submits from a single thread."""
    call: futures.Future = futures.Future()
    self._tasks.put((call, functools.partial(function, *arguments, **named)))
    is_idle = self._idle.acquire(blocking=False)
    if not is_idle and len(self._threads) < self._most:
      thread = threading.Thread(target=self._work, name='call', daemon=True)
      self._threads.append(thread)
      thread.start()
    return call

  def shutdown(self, wait=True, *, cancel_futures=False):
    """Ends threads after their queued calls."""
    del wait, cancel_futures
    for _ in self._threads:
      self._tasks.put(None)

  def _work(self) -> None:
    while (task := self._tasks.get()) is not None:
      call, function = task
      if call.set_running_or_notify_cancel():
        try:
          call.set_result(function())
        except BaseException as error:
          call.set_exception(error)
      self._idle.release()


class Client(calls.RemoteMethods):
  """Client of a server, with its methods; connects on the first call.

  Attributes:
    address: Address of the server, 'host:port'.
    futures: The same methods, without waiting: each returns a future; canceling
      it cancels the call.
  """

  def __init__(self, address: str, timeout_seconds: float, token: str):
    super().__init__(self._wait_for)
    self.address = address
    self.futures = calls.RemoteMethods(self._begin)
    self._timeout_seconds = timeout_seconds
    self._token = token

  def _wait_for(self, method: str, *arguments: Any, **named: Any) -> Any:
    # Faster than a future.
    stub = _stub(self.address, method)
    try:
      return _unpack(stub(_pickle((arguments, named)), **self._settings()))
    except grpc.RpcError as error:
      raise self._describe(method, error) from None

  def _begin(
    self, method: str, *arguments: Any, **named: Any
  ) -> futures.Future:
    found: futures.Future = futures.Future()

    def settle(call: Any) -> None:
      if not found.set_running_or_notify_cancel():
        return
      try:
        found.set_result(_unpack(call.result()))
      except grpc.RpcError as error:
        found.set_exception(self._describe(method, error))
      except BaseException as error:
        found.set_exception(error)

    stub = _stub(self.address, method)
    call = stub.future(_pickle((arguments, named)), **self._settings())
    found.add_done_callback(
      lambda found: call.cancel() if found.cancelled() else None
    )
    call.add_done_callback(settle)
    return found

  def _settings(self) -> dict[str, Any]:
    """Returns the settings of a new call."""
    metadata = (_TOKEN, self._token), (_CALL, uuid.uuid4().hex)
    return {
      'timeout': self._timeout_seconds,
      'metadata': metadata,
      'wait_for_ready': True,
    }

  def _describe(self, method: str, error: Any) -> CallError:
    if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
      problem = f'Waited {self._timeout_seconds:g} seconds for a reply'
      if not calls.is_listening(self):
        problem += '; no server is listening'
      problem += '.'
    else:
      problem = f'{error.code().name}: {error.details()}'
    return CallError(f"Call of '{method}' at {self.address}: {problem}")


make_client = Client


def _unpack(reply: bytes) -> Any:
  succeeded, result = cloudpickle.loads(reply)
  if not succeeded:
    raise CallError(result)
  return result


@functools.cache
def _channel_to(address: str) -> Any:
  """Returns the channel to a server, shared by all clients.

  Channels stay open, since closing one waits for its calls, wherever Python
  deletes it. A channel to a lost server takes 15 kB.
  """
  return grpc.insecure_channel(address, options=_CLIENT_OPTIONS)


@functools.cache
def _stub(address: str, method: str) -> Any:
  return _channel_to(address).unary_unary(f'/{_SERVICE}/{method}')
