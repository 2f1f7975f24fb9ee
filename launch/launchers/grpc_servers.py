"""Calls between nodes by gRPC alone: its servers and clients.

They look like Courier's. A call is one message each way, a pickle, without any
schema and of any size. The metadata, with the token, arrive before the message:
without the token, the message is not received.
"""

import contextlib
import functools
import hmac
import os
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any

import cloudpickle

from repertory.components import interfaces
from repertory.launch.launchers import calls, served_calls

# Of gRPC, read when it is imported. Else it would hold up each fork, in which
# nobody uses it, and tell of each server that ends.
os.environ.setdefault('GRPC_ENABLE_FORK_SUPPORT', '0')
os.environ.setdefault('GRPC_VERBOSITY', 'ERROR')

import grpc

_SERVICE = 'repertory'

# What a caller tells beside its arguments: the token, and by what its call is
# known, the same if it is repeated.
_TOKEN, _CALL = 'token', 'call'

_ANY_SIZE = (
  ('grpc.max_send_message_length', -1),
  ('grpc.max_receive_message_length', -1),
)
_SERVER_OPTIONS = (
  *_ANY_SIZE,
  ('grpc.so_reuseport', 0),  # Two servers must never share a port.
  # Who is asked more often than this, with nothing sent between, hangs up.
  ('grpc.http2.min_ping_interval_without_data_ms', 10_000),
)
_CLIENT_OPTIONS = (
  *_ANY_SIZE,
  ('grpc.enable_http_proxy', 0),  # Which would not find nodes.
  # A node that is started again is looked for so often; gRPC would do so ever
  # less often, up to every two minutes.
  ('grpc.initial_reconnect_backoff_ms', 100),
  ('grpc.max_reconnect_backoff_ms', 500),
  # To connect may take so long, not 20 s: a host may be gone without a word.
  ('grpc.min_reconnect_backoff_ms', 5000),
  # A host may be gone without a word. While calls wait it is asked so often,
  # with no limit to that, and given so long to answer, which versions of gRPC
  # call by different names.
  ('grpc.keepalive_time_ms', 30_000),
  ('grpc.http2.max_pings_without_data', 0),
  ('grpc.http2.ping_timeout_ms', 20_000),
  ('grpc.keepalive_timeout_ms', 20_000),
)

# Calls may go on so long when their server ends.
_GRACE_SECONDS = 1.0
_END_SECONDS = 5.0


class CallError(Exception):
  """A call failed: its server raised an error, or there was no answer.

  What was raised is not raised again, for it is no error of who calls: the
  message has it, with its traceback.
  """


class Server:
  """Listens when it serves."""

  def __init__(self, port: int, num_threads: int, token: str):
    self.port = port
    self.num_threads = num_threads
    self.token = token.encode()


def make_server(port: int, num_threads: int, token: str) -> Server:
  """Returns a server that is yet to be started.

  Args:
    port: Where it will listen.
    num_threads: Calls that it takes at the same time.
    token: What all who may call it know.
  """
  return Server(port, num_threads, token)


def make_client(address: str, timeout_seconds: float, token: str) -> 'Client':
  """Returns a client; it looks for the server when it is first called.

  Args:
    address: 'host:port'.
    timeout_seconds: How long a call may take.
    token: The server's.
  """
  return Client(address, timeout_seconds, token)


@contextlib.contextmanager
def serving(
  server: Server | None,
  served: Mapping[str, Callable[..., Any]],
  shut_down: Callable[[], None],
  interface: interfaces.Interface = interfaces.LOOPBACK,
) -> Iterator[None]:
  """Takes calls while the block runs.

  Args:
    server: None of a node that nobody calls, where nothing is done.
    served: What may be called, by name.
    shut_down: Called as `shutdown`.
    interface: Over what they come.

  Raises:
    RuntimeError: If it cannot listen, for another server does.
  """
  if server is None:
    yield
    return
  methods = {**served, 'shutdown': shut_down}
  answers = served_calls.Answers()
  handlers = {
    f'/{_SERVICE}/{name}': grpc.unary_unary_rpc_method_handler(
      functools.partial(_take, method, answers)
    )
    for name, method in methods.items()
  }
  threads: Any = served_calls.Threads(server.num_threads)
  listener = grpc.server(
    threads,
    handlers=[_Admitting(handlers, server.token)],
    options=_SERVER_OPTIONS,
  )
  try:
    try:
      for address in interfaces.addresses_to_bind(interface):
        bound = interfaces.Interface(address, interface.names)
        listener.add_insecure_port(bound.address(server.port))
      interfaces.restrict(server.port, interface)
    finally:
      listener.start()  # To stop it closes what it listens at only then.
    yield
  finally:
    listener.stop(_GRACE_SECONDS).wait(_END_SECONDS)
    threads.shutdown()


class _Admitting(grpc.GenericRpcHandler):
  """Checks the token of a call before its message is received.

  Receiving a message allocates its size, and unpickling it may run any code.
  """

  def __init__(self, handlers: Mapping[str, Any], token: bytes):
    self._handlers = handlers
    self._token = token

  def service(self, handler_call_details: Any) -> Any:
    """Returns a handler of grpc; None if there is no such method."""
    metadata = dict(handler_call_details.invocation_metadata)
    token = metadata.get(_TOKEN, '').encode()
    if not hmac.compare_digest(token, self._token):
      return _REFUSING
    return self._handlers.get(handler_call_details.method)


def _refuse(requests: Any, context: Any) -> None:
  del requests  # Messages of a stream are received when iterated over.
  context.abort(
    grpc.StatusCode.UNAUTHENTICATED, 'Callers must have the token of the run.'
  )


# A handler of streams: others receive the message before they are called.
_REFUSING = grpc.stream_unary_rpc_method_handler(_refuse)


def _take(
  method: Callable[..., Any],
  answers: served_calls.Answers,
  request: bytes,
  context: Any,
) -> bytes:
  """Answers a call; a repeated call gets the answer of the first."""
  metadata = dict(context.invocation_metadata())
  return answers.get(metadata[_CALL], lambda: _answer(method, request))


def _answer(method: Callable[..., Any], request: bytes) -> bytes:
  """Answers a call: whether it succeeded, and what came of it."""
  try:
    arguments, named = cloudpickle.loads(request)
    return _pickle((True, method(*arguments, **named)))
  except BaseException as error:
    told = ''.join(traceback.format_exception(error))
    return _pickle(
      (False, f'Python exception was raised on the server:\n{told}')
    )


def _pickle(value: Any) -> bytes:
  return cloudpickle.dumps(value, protocol=5)


class Client:
  """Calls a server; whatever it is asked for is a method of that.

  Attributes:
    address: The server's.
    futures: Makes calls without waiting: each returns a future, and is given
      up if that is canceled.
  """

  def __init__(self, address: str, timeout_seconds: float, token: str):
    self.address = address
    self.futures = _Calls(self._begin)
    self._calls = _Calls(self._call)
    self._timeout_seconds = timeout_seconds
    self._token = token
    self._stubs: dict[str, Any] = {}

  def __getattr__(self, method: str) -> Callable[..., Any]:
    return getattr(self._calls, method)

  def _call(self, method: str, *arguments: Any, **named: Any) -> Any:
    call = self._prepare(self._stub(method), arguments, named)
    end, loss = time.monotonic() + self._timeout_seconds, ''
    while True:
      try:
        reply = call(timeout=end - time.monotonic())
      except grpc.RpcError as error:
        if not _may_be_repeated(error):
          raise self._describe(method, error, loss) from None
        loss = error.details() or ''
      else:
        return _unpack(reply)

  def _begin(
    self, method: str, *arguments: Any, **named: Any
  ) -> futures.Future:
    found: futures.Future = futures.Future()
    start = self._prepare(self._stub(method).future, arguments, named)
    end, losses = time.monotonic() + self._timeout_seconds, ['']

    def begin() -> None:
      call = start(timeout=end - time.monotonic())
      # At once if it is canceled already.
      found.add_done_callback(
        lambda found: call.cancel() if found.cancelled() else None
      )
      call.add_done_callback(settle)

    def settle(call: Any) -> None:
      if not found.cancelled() and _may_be_repeated(call):
        losses.append(call.details() or '')
        try:
          begin()
        except BaseException as error:
          if found.set_running_or_notify_cancel():
            found.set_exception(error)
      elif found.set_running_or_notify_cancel():
        try:
          found.set_result(_unpack(call.result()))
        except grpc.RpcError as error:
          found.set_exception(self._describe(method, error, losses[-1]))
        except BaseException as error:
          found.set_exception(error)

    begin()
    return found

  def _prepare(
    self,
    stub: Callable[..., Any],
    arguments: Sequence[Any],
    named: Mapping[str, Any],
  ) -> Callable[..., Any]:
    """Returns what makes a call, again if need be, within a time-out."""
    return functools.partial(
      stub,
      _pickle((arguments, named)),
      metadata=((_TOKEN, self._token), (_CALL, uuid.uuid4().hex)),
      wait_for_ready=True,
    )

  def _stub(self, method: str) -> Any:
    if method not in self._stubs:
      channel = _channel_to(self.address)
      self._stubs[method] = channel.unary_unary(f'/{_SERVICE}/{method}')
    return self._stubs[method]

  def _describe(self, method: str, error: Any, loss: str) -> CallError:
    """Says what became of a call, which may have lost a connection before."""
    if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
      problem = f'Waited {self._timeout_seconds:g} seconds for the answer'
      if loss:
        problem += f'; the connection was lost before: {loss}'
      elif not calls.is_listening(self):
        problem += '; nobody listens there'
      problem += '.'
    else:
      problem = f'{error.code().name}: {error.details()}'
    return CallError(f"Call of '{method}' at {self.address}: {problem}")


class _Calls:
  """Whatever it is asked for is a method that is called in some way."""

  def __init__(self, call: Callable[..., Any]):
    self._call = call

  def __getattr__(self, method: str) -> Callable[..., Any]:
    if method.startswith('__'):  # Python's own, which no node serves.
      raise AttributeError(method)
    return functools.partial(self._call, method)


def _may_be_repeated(call: Any) -> bool:
  """Returns whether the connection of a call, or of its error, was lost.

  If the server was lost with it, one that is started again in its place takes
  the call, as Courier has it; if not, it knows the call, see `Answers`.
  """
  return call.code() == grpc.StatusCode.UNAVAILABLE


def _unpack(reply: bytes) -> Any:
  succeeded, result = cloudpickle.loads(reply)
  if not succeeded:
    raise CallError(result)
  return result


@functools.cache
def _channel_to(address: str) -> Any:
  """Returns what connects to a server, the same to all that ask.

  It stays, for to close one waits for its calls, wherever Python lets go of it;
  to a server that is gone it is an object of 15 kB.
  """
  return grpc.insecure_channel(address, options=_CLIENT_OPTIONS)
