"""Inference server: batches thin actors' timesteps for one policy call.

The exchange with an actor is a conversation, a generator that yields whatever
it waits for. One event loop resumes them all.
"""

import collections
import contextlib
import functools
import queue
import selectors
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from repertory.components import specs
from repertory.components.inference import (
  addresses,
  client,
  connections,
  frames,
  handshakes,
  statistics,
)
from repertory.components.runtime import callers, signals

# Interval at which the loop checks the stop signal.
_SLICE_SECONDS = 0.2


class _Job(NamedTuple):
  """A blocking call in the thread of a waiter.

  If it `closes`, it is called even after the end of conversation and server.
  """

  waiter: '_Waiter'
  call: Callable[[], None]
  closes: bool = False


class _Conversation:
  """The exchange with one actor.

  Attributes:
    steps: Generator of what it waits for: an event of the socket or a `_Job`.
    connection: The actor's environments; None before the handshake.
    deadline: Local time until which the handshake must be complete.
    events: Events of the socket that are registered with the selector.
    arrived_at: Local time at which the frame to answer arrived.
  """

  steps: Generator[Any, None, None]
  connection: Any = None

  def __init__(self, stream: socket.socket):
    self.stream = stream
    self.deadline = time.monotonic() + handshakes.TIMEOUT_SECONDS
    self.events = 0
    self.arrived_at = 0.0
    self.is_closed = False


class _Waiter:
  """A thread that processes the blocking calls of conversations, one by one.

  Meanwhile the connection is not read, which blocks its actor, while the server
  continues for all others.
  """

  def __init__(self, notify: Callable[[_Conversation], None]):
    """Starts the thread, which calls `notify` when a call has ended."""
    self._notify = notify
    self._jobs: queue.SimpleQueue[tuple[_Conversation, _Job] | None] = (
      queue.SimpleQueue()
    )
    self._busy_since = 0.0
    self._seconds = 0.0
    self.error: BaseException | None = None
    self._thread = threading.Thread(
      target=self._run, name='inference_waiter', daemon=True
    )
    self._thread.start()

  def submit(self, conversation: _Conversation, job: _Job) -> None:
    """Queues a call."""
    self._jobs.put((conversation, job))

  def seconds(self) -> float:
    """Returns the total time spent waiting."""
    since = self._busy_since
    return self._seconds + (time.monotonic() - since if since else 0.0)

  def close(self, timeout_seconds: float = 5.0) -> None:
    """Ends the thread, after the current call."""
    self._jobs.put(None)
    self._thread.join(timeout_seconds)
    with contextlib.suppress(queue.Empty):  # The thread may still take some.
      while True:
        queued = self._jobs.get_nowait()
        if queued is not None and queued[1].closes:
          with contextlib.suppress(Exception):  # The server has ended.
            queued[1].call()
    self._jobs.put(None)  # If the call still blocks the thread.

  def _run(self) -> None:
    while (queued := self._jobs.get()) is not None:
      conversation, job = queued
      self._busy_since = time.monotonic()
      try:
        if job.closes or not conversation.is_closed:
          job.call()
      except signals.Stopped:
        return
      except BaseException as error:  # Raised in the server's thread.
        self.error = error
        return
      finally:
        self._seconds += time.monotonic() - self._busy_since
        self._busy_since = 0.0
      self._notify(conversation)


class InferenceServer:
  """A single event loop over all connections; call `serve` in a thread.

  A batch is run when half of all rows are waiting, or when its first row has
  waited for `window_seconds`. An actor's error ends only its own connection,
  with a message; so does a policy that fails for its rows.
  """

  def __init__(
    self,
    address: str,
    spec: specs.EnvironmentSpec,
    roles: Mapping[str, connections.Role],
    *,
    token: str = '',
    window_seconds: float = 0.001,
    stop: signals.StopSignal | None = None,
  ):
    """Starts to listen.

    Args:
      address: Address to listen on; see `addresses`.
      spec: Spec of one environment.
      roles: Roles by purpose: 'training', and optionally 'evaluation'.
      token: The run's token; clients without it are refused.
      window_seconds: Time limit for the first row of a batch to wait.
      stop: Ends `serve`.
    """
    self._listener, self.address = addresses.listen(address)
    self._spec = spec
    self._roles = dict(roles)
    self._fencing = callers.Fencing(token)
    self._window_seconds = window_seconds
    self._stop = stop or signals.StopSignal()
    self.statistics = statistics.Statistics()
    self._wake_up, self._waker = socket.socketpair()
    self._wake_up.setblocking(False)
    self._waker.setblocking(False)
    # Conversations whose job has ended.
    self._released: collections.deque[_Conversation] = collections.deque()
    # Two threads, because refreshes and adders must not wait for each other.
    self._waiter = _Waiter(self._notify)
    self._refresher = _Waiter(self._notify)
    self._adding_seconds = 0.0
    self._selector = selectors.DefaultSelector()
    self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
    self._selector.register(self._wake_up, selectors.EVENT_READ, self._wake)
    self._handshakes: set[_Conversation] = set()
    self._conversations: set[_Conversation] = set()  # After the handshake.

  def serve(self) -> None:
    """Serves until the stop signal is set; leaves the connections open.

    So a failure can be reported before clients notice it. Call `close`
    afterwards.

    Raises:
      Exception: Any error of an adder or of the variable client.
    """
    try:
      while not self._stop.is_set():
        for key, _ in self._selector.select(self._wait_seconds()):
          key.data()
        for conversation in list(self._handshakes):
          if time.monotonic() > conversation.deadline:
            self._resume(conversation)
        for one in (self._waiter, self._refresher):
          if one.error is not None:
            raise one.error
        for role in self._roles.values():
          while self._is_batch_due(role):
            self._run_batch(role)
    except BaseException:
      self._stop.set()  # Ends all other waits of a failed server.
      raise

  def report(self) -> dict[str, float]:
    """Returns metrics since the last report; see `Statistics`."""
    row = self.statistics.report(self._adding_seconds + self._waiter.seconds())
    row['actors'] = len(self._conversations)
    return row

  # Conversations.

  def _accept(self) -> None:
    with contextlib.suppress(BlockingIOError):
      stream, _ = self._listener.accept()
      stream.setblocking(False)
      addresses.tune(stream)
      if not addresses.is_of_this_user(stream):
        stream.close()
        return
      conversation = _Conversation(stream)
      conversation.steps = self._converse(conversation)
      self._handshakes.add(conversation)
      self._resume(conversation)

  def _converse(
    self, conversation: _Conversation
  ) -> Generator[Any, None, None]:
    """Serves an actor, from its handshake to its goodbye."""
    stream = conversation.stream
    try:
      hello = yield from handshakes.receive(stream, conversation.deadline)
      connection = self._admit(conversation, hello)
      handshakes.send(stream, frames.WELCOME)
      while True:
        kind, round_trip = yield from connection.receive()
        self.statistics.note_round_trip(round_trip)
        if kind == frames.BYE:
          break
        chosen = connection.chosen  # That led to these timesteps.
        if client.is_answerless(connection.leaves[0]):
          connection.forget_action()
        else:
          yield from self._wait_for_action(conversation, kind)
          connection.send_answer()
          connection.keep_action()
        # After the answer, which need not wait for the adder.
        started_at = time.perf_counter()
        must_wait = connection.write_step(kind, chosen)
        self._adding_seconds += time.perf_counter() - started_at
        if must_wait:
          yield _Job(self._waiter, connection.adder.wait)
        while connection.has_unsent:
          yield selectors.EVENT_WRITE
          connection.send_rest()
      if (adder := connection.take_adder()) is not None:
        yield _Job(self._waiter, adder.close, closes=True)
      handshakes.send(stream, frames.GOODBYE)
    except frames.Disconnected:
      pass
    except frames.ProtocolError as error:
      handshakes.refuse(stream, error)

  def _admit(
    self, conversation: _Conversation, hello: dict[str, Any]
  ) -> connections.ActorConnection:
    """Checks a handshake, and ends earlier connections of the actor."""
    role = handshakes.check(hello, self._spec, self._roles, self._fencing)
    ids = hello['environment_ids']
    replaced = {role.owners[i] for i in ids if i in role.owners}
    for earlier in list(self._conversations):
      if earlier.connection in replaced:
        self._end(earlier)
    connection = connections.ActorConnection(
      conversation.stream, hello, role, self._spec
    )
    conversation.connection = connection
    role.owners.update(dict.fromkeys(ids, connection))
    self._handshakes.discard(conversation)
    self._conversations.add(conversation)
    return connection

  def _wait_for_action(
    self, conversation: _Conversation, kind: int
  ) -> Generator[Any, None, None]:
    """Waits until the policy has acted for a frame."""
    connection = conversation.connection
    role = connection.role
    if kind == frames.START and role.refreshes_at_start:
      update = functools.partial(role.variables.update, wait=True)
      yield _Job(self._refresher, update)
    conversation.arrived_at = time.perf_counter()
    connection.is_pending = True
    role.pending.append(conversation)
    while connection.is_pending:
      yield selectors.EVENT_READ
      if connection.is_pending:
        connection.check_silence()

  def _resume(self, conversation: _Conversation) -> None:
    """Continues a conversation until it waits again, or has ended."""
    wanted = next(conversation.steps, None)
    if wanted is None:
      self._end(conversation)
    elif isinstance(wanted, _Job):
      self._watch(conversation, 0)
      wanted.waiter.submit(conversation, wanted)
    else:
      self._watch(conversation, wanted)

  def _watch(self, conversation: _Conversation, events: int) -> None:
    """Selects events of a conversation's socket; 0 for none."""
    before, conversation.events = conversation.events, events
    if events == before:
      return
    if before:
      self._selector.unregister(conversation.stream)
    if events:
      resume = functools.partial(self._resume, conversation)
      self._selector.register(conversation.stream, events, resume)

  def _end(self, conversation: _Conversation) -> None:
    """Frees a conversation's environments; unwritten experience is lost."""
    if conversation.is_closed:
      return
    conversation.is_closed = True
    conversation.steps.close()
    self._watch(conversation, 0)
    conversation.stream.close()
    self._handshakes.discard(conversation)
    self._conversations.discard(conversation)
    if (connection := conversation.connection) is None:
      return
    role = connection.role
    for i in connection.ids.tolist():
      if role.owners.get(i) is connection:
        del role.owners[i]
    with contextlib.suppress(ValueError):
      role.pending.remove(conversation)
    if (adder := connection.take_adder()) is not None:
      job = _Job(self._waiter, adder.close, closes=True)
      self._waiter.submit(conversation, job)

  # Batches.

  def _wait_seconds(self) -> float:
    """Returns how long the next batch can wait."""
    deadline = min(
      (
        role.pending[0].arrived_at + self._window_seconds
        for role in self._roles.values()
        if role.pending
      ),
      default=None,
    )
    if deadline is None:
      return _SLICE_SECONDS
    return min(max(0.0, deadline - time.perf_counter()), _SLICE_SECONDS)

  def _is_batch_due(self, role: connections.Role) -> bool:
    if not role.pending:
      return False
    rows = sum(one.connection.batch_size for one in role.pending)
    waited = time.perf_counter() - role.pending[0].arrived_at
    return rows >= role.target or waited >= self._window_seconds

  def _run_batch(self, role: connections.Role) -> None:
    """Runs a batch of waiting connections, and answers them."""
    if role.variables is not None and not role.refreshes_at_start:
      role.variables.update()
    batch, rows = [], 0
    while role.pending:
      rows += role.pending[0].connection.batch_size
      if batch and rows > role.store.buckets[-1]:
        break
      batch.append(role.pending.popleft())
    self._act_for(role, batch)

  def _act_for(
    self, role: connections.Role, batch: list[_Conversation]
  ) -> None:
    """Acts for connections and answers them; if that fails, each alone."""
    acting = [conversation.connection for conversation in batch]
    started_at = time.perf_counter()
    try:
      bucket = connections.act_for(role.store, acting)
    except Exception as error:
      if len(batch) > 1:
        for conversation in batch:
          self._act_for(role, [conversation])
      else:
        handshakes.refuse(batch[0].stream, error)
        self._end(batch[0])
      return
    acted_at = time.perf_counter()
    waits = [started_at - conversation.arrived_at for conversation in batch]
    for conversation in batch:
      conversation.connection.is_pending = False
      self._resume(conversation)
    self.statistics.note_batch(
      rows=sum(connection.batch_size for connection in acting),
      bucket=bucket,
      waits=waits,
      run=acted_at - started_at,
    )

  # Other threads.

  def _notify(self, conversation: _Conversation) -> None:
    """Wakes the loop; called in a waiter's thread."""
    self._released.append(conversation)
    with contextlib.suppress(BlockingIOError, OSError):
      self._waker.send(b'.')

  def _wake(self) -> None:
    """Resumes the conversations whose job has ended."""
    with contextlib.suppress(BlockingIOError):
      self._wake_up.recv(1 << 16)
    while self._released:
      conversation = self._released.popleft()
      if not conversation.is_closed:
        self._resume(conversation)

  def close(self) -> None:
    """Closes all connections and threads."""
    for conversation in [*self._handshakes, *self._conversations]:
      self._end(conversation)
    self._waiter.close()
    self._refresher.close()
    self._selector.close()
    self._listener.close()
    self._wake_up.close()
    self._waker.close()
