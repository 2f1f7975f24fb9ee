"""Inference server: batches thin actors' timesteps for one policy call."""

import collections
import contextlib
import functools
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping

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


class _Waiter:
  """A thread that processes the blocking waits of connections, one by one.

  Meanwhile the connection is not read, which blocks its actor, while the server
  continues for all others.
  """

  def __init__(self, notify: Callable[[], None]):
    """Starts the thread, which calls `notify` when a wait has ended."""
    self._notify = notify
    # Each with its connection, function to call, and whether the call is
    # mandatory.
    self._jobs: collections.deque[
      tuple[connections.ActorConnection, Callable[[], None], bool]
    ] = collections.deque()
    self._wanted = threading.Event()
    self._closed = False
    self._busy_since = 0.0
    self._seconds = 0.0
    self.error: BaseException | None = None
    self._thread = threading.Thread(
      target=self._run, name='inference_waiter', daemon=True
    )
    self._thread.start()

  def submit(
    self,
    connection: connections.ActorConnection,
    wait: Callable[[], None],
    *,
    closes: bool = False,
  ) -> None:
    """Queues a wait, which is called even after the end if it `closes`."""
    connection.submitted += 1
    self._jobs.append((connection, wait, closes))
    self._wanted.set()

  def seconds(self) -> float:
    """Returns the total time spent waiting."""
    since = self._busy_since
    return self._seconds + (time.monotonic() - since if since else 0.0)

  def close(self, timeout_seconds: float = 5.0) -> None:
    """Ends the thread, after the current wait."""
    self._closed = True
    self._wanted.set()
    self._thread.join(timeout_seconds)
    for _, wait, closes in self._jobs:
      if closes:
        with contextlib.suppress(Exception):  # The server has ended.
          wait()

  def _run(self) -> None:
    while not self._closed:
      self._wanted.wait(_SLICE_SECONDS)
      self._wanted.clear()
      while self._jobs and not self._closed:
        connection, wait, closes = self._jobs.popleft()
        self._busy_since = time.monotonic()
        try:
          if closes or not connection.is_closed:
            wait()
        except signals.Stopped:
          self._closed = True
        except BaseException as error:  # Raised in the server's thread.
          self.error = error
          self._closed = True
        self._seconds += time.monotonic() - self._busy_since
        self._busy_since = 0.0
        connection.completed += 1
        self._notify()


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
    # Two threads, because refreshes and adders must not wait for each other.
    self._waiter = _Waiter(self._notify)
    self._refresher = _Waiter(self._notify)
    self._adding_seconds = 0.0
    self._selector = selectors.DefaultSelector()
    self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
    self._selector.register(self._wake_up, selectors.EVENT_READ, self._wake)
    self._handshakes: dict[socket.socket, handshakes.Handshake] = {}
    self._connections: set[connections.ActorConnection] = set()
    self._held: list[connections.ActorConnection] = []

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
        for handshake in list(self._handshakes.values()):
          if handshake.is_late:
            self._shake_hands(handshake)
        self._release_held()
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
    row['actors'] = len(self._connections)
    return row

  # Connections.

  def _accept(self) -> None:
    with contextlib.suppress(BlockingIOError):
      stream, _ = self._listener.accept()
      stream.setblocking(False)
      addresses.tune(stream)
      if not addresses.is_of_this_user(stream):
        stream.close()
        return
      handshake = handshakes.Handshake(stream)
      self._handshakes[stream] = handshake
      self._selector.register(
        stream, selectors.EVENT_READ, lambda: self._shake_hands(handshake)
      )

  def _shake_hands(self, handshake: handshakes.Handshake) -> None:
    stream = handshake.stream
    try:
      hello = handshake.receive()
      if hello is None:
        return
      role = handshakes.check(hello, self._spec, self._roles, self._fencing)
      for owner in {role.owners.get(i) for i in hello['environment_ids']}:
        if owner is not None:
          self._end(owner)  # An earlier connection of the actor.
    except (ConnectionError, OSError):
      self._forget(stream)
      return
    except frames.ProtocolError as error:
      handshakes.refuse(stream, error)
      self._forget(stream)
      return
    del self._handshakes[stream]
    connection = connections.ActorConnection(stream, hello, role, self._spec)
    self._connections.add(connection)
    role.owners.update(dict.fromkeys(hello['environment_ids'], connection))
    self._watch(connection, self._selector.modify)
    try:
      stream.send(frames.header(frames.WELCOME, 0))
    except OSError:  # It has gone already.
      self._end(connection)

  def _receive(self, connection: connections.ActorConnection) -> None:
    if connection.has_unsent and not self._send_rest(connection):
      return
    try:
      if connection.is_pending or connection.is_leaving:
        connection.check_silence()
        return
      frame = connection.receive()
      if frame is None:
        return
      kind, round_trip = frame
      self.statistics.note_round_trip(round_trip)
      if kind == frames.BYE:
        self._leave(connection)
        return
      connection.arrived_at = time.perf_counter()
    except (ConnectionError, OSError):
      self._end(connection)
    except frames.ProtocolError as error:
      handshakes.refuse(connection.stream, error)
      self._end(connection)
    else:
      self._note_frame(connection, kind)

  def _note_frame(
    self, connection: connections.ActorConnection, kind: int
  ) -> None:
    """Queues a frame for the policy, unless it needs no action."""
    connection.note_frame(kind)
    if client.is_answerless(connection.leaves[0]):
      connection.forget_action()
      self._write_step(connection)
    elif kind == frames.START and connection.role.refreshes_at_start:
      connection.is_refreshing = True
      self._hold(connection)
      update = functools.partial(connection.role.variables.update, wait=True)
      self._refresher.submit(connection, update)
    else:
      self._put_in_line(connection)

  def _put_in_line(self, connection: connections.ActorConnection) -> None:
    connection.is_pending = True
    connection.role.pending.append(connection)

  def _write_step(self, connection: connections.ActorConnection) -> bool:
    """Gives the frame to the adder; returns False if the adder must wait.

    The connection is not read meanwhile.
    """
    started_at = time.perf_counter()
    must_wait = connection.write_step()
    self._adding_seconds += time.perf_counter() - started_at
    if must_wait:
      self._hold(connection)
      self._waiter.submit(connection, connection.adder.wait)
    return not must_wait

  def _hold(self, connection: connections.ActorConnection) -> None:
    """Stops reading a connection while a waiter has a job for it."""
    self._selector.unregister(connection.stream)
    self._held.append(connection)

  def _release_held(self) -> None:
    if not self._held:
      return
    held, self._held = self._held, []
    for connection in held:
      if connection.is_closed:
        continue
      if connection.is_held:
        self._held.append(connection)
        continue
      self._watch(connection, self._selector.register)
      if connection.is_refreshing:
        connection.is_refreshing = False
        # The server could not have answered earlier.
        connection.arrived_at = time.perf_counter()
        self._put_in_line(connection)

  def _leave(self, connection: connections.ActorConnection) -> None:
    """Writes open experience, and then answers."""
    connection.is_leaving = True
    if connection.adder is not None:
      self._waiter.submit(connection, connection.adder.close, closes=True)
    else:
      self._say_goodbye(connection)

  def _say_goodbye(self, connection: connections.ActorConnection) -> None:
    with contextlib.suppress(OSError):
      connection.stream.send(frames.header(frames.GOODBYE, 0))
    self._end(connection)

  def _end(self, connection: connections.ActorConnection) -> None:
    """Frees a connection's environments; unwritten experience is lost."""
    if connection.is_closed:
      return
    connection.is_closed = True
    self._connections.discard(connection)
    for i in connection.ids.tolist():
      if connection.role.owners.get(i) is connection:
        del connection.role.owners[i]
    with contextlib.suppress(ValueError):
      connection.role.pending.remove(connection)
    if connection.adder is not None and not connection.is_leaving:
      self._waiter.submit(connection, connection.adder.close, closes=True)
    self._forget(connection.stream)

  def _forget(self, stream: socket.socket) -> None:
    self._handshakes.pop(stream, None)
    with contextlib.suppress(KeyError, ValueError):
      self._selector.unregister(stream)
    stream.close()

  def _send_rest(self, connection: connections.ActorConnection) -> bool:
    """Sends the rest of an answer; returns whether the actor is there."""
    try:
      connection.send_rest()
    except ConnectionError:
      self._end(connection)
      return False
    if not connection.has_unsent:
      self._watch(connection, self._selector.modify)
    return True

  def _watch(
    self, connection: connections.ActorConnection, change: Callable
  ) -> None:
    """Registers or modifies the events to select for a connection."""
    events = selectors.EVENT_READ
    if connection.has_unsent:
      events |= selectors.EVENT_WRITE
    change(connection.stream, events, lambda: self._receive(connection))

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
    rows = sum(connection.batch_size for connection in role.pending)
    waited = time.perf_counter() - role.pending[0].arrived_at
    return rows >= role.target or waited >= self._window_seconds

  def _run_batch(self, role: connections.Role) -> None:
    """Runs a batch of waiting connections, and answers them."""
    if role.variables is not None and not role.refreshes_at_start:
      role.variables.update()
    largest = role.store.buckets[-1]
    batch = [role.pending.popleft()]
    rows = batch[0].batch_size
    while role.pending and rows + role.pending[0].batch_size <= largest:
      batch.append(role.pending.popleft())
      rows += batch[-1].batch_size
    self._serve(role, batch)

  def _serve(
    self, role: connections.Role, batch: list[connections.ActorConnection]
  ) -> None:
    """Acts for connections and answers them; if that fails, each alone."""
    started_at = time.perf_counter()
    try:
      bucket = connections.act_for(role.store, batch)
    except Exception as error:
      if len(batch) > 1:
        for connection in batch:
          self._serve(role, [connection])
      else:
        handshakes.refuse(batch[0].stream, error)
        self._end(batch[0])
      return
    acted_at = time.perf_counter()
    for connection in batch:
      self._answer(connection)
    self.statistics.note_batch(
      rows=sum(connection.batch_size for connection in batch),
      bucket=bucket,
      waits=[started_at - connection.arrived_at for connection in batch],
      run=acted_at - started_at,
    )

  def _answer(self, connection: connections.ActorConnection) -> None:
    try:
      connection.send_answer()
    except ConnectionError:
      self._end(connection)
      return
    connection.keep_action()
    if self._write_step(connection) and connection.has_unsent:
      self._watch(connection, self._selector.modify)

  # Other threads.

  def _notify(self) -> None:
    """Wakes the loop; called in the waiter's thread."""
    with contextlib.suppress(BlockingIOError, OSError):
      self._waker.send(b'.')

  def _wake(self) -> None:
    with contextlib.suppress(BlockingIOError):
      self._wake_up.recv(1 << 16)
    for connection in list(self._connections):
      if connection.is_leaving and not connection.is_held:
        self._say_goodbye(connection)

  def close(self) -> None:
    """Closes all connections and threads."""
    for connection in list(self._connections):
      self._forget(connection.stream)
      connection.is_closed = True
    for stream in list(self._handshakes):
      self._forget(stream)
    self._waiter.close()
    self._refresher.close()
    for connection in self._connections:
      if connection.adder is not None and not connection.is_leaving:
        with contextlib.suppress(Exception):
          connection.adder.close()
    self._selector.close()
    self._listener.close()
    self._wake_up.close()
    self._waker.close()
