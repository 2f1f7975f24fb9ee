"""Inference server: batches thin actors' timesteps for one policy call.

The exchange with an actor is a generator that yields whatever it waits for. One
event loop resumes them all.
"""

import collections
import contextlib
import functools
import itertools
import selectors
import socket
import time
from collections.abc import Callable, Generator
from concurrent import futures
from typing import Any

import numpy as np

from repertory.components import specs
from repertory.components.inference import connections, protocol, state_store
from repertory.components.network import (
  addresses,
  callers,
  frames,
  network_interfaces,
)
from repertory.components.runtime import signals, worker_thread

# Interval at which the loop checks the stop signal.
_SLICE_SECONDS = 0.2

# Time limit for the calls that block the thread at the end.
_CLOSE_SECONDS = 5.0


class Statistics:
  """Figures since the last report; written in one thread, read in another."""

  def __init__(self):
    self._since = time.monotonic()
    self._blocked = 0.0
    self._batches: collections.deque[tuple[int, int, float]] = (
      collections.deque()
    )
    self._waits: collections.deque[float] = collections.deque()
    self._round_trips: collections.deque[float] = collections.deque()

  def note_batch(
    self, rows: int, bucket: int, waits: list[float], run: float
  ) -> None:
    """Records a batch of `rows`, padded to `bucket`, and times in seconds."""
    self._batches.append((rows, bucket, run))
    self._waits.extend(waits)

  def note_round_trip(self, seconds: float) -> None:
    """Records how long an actor waited for its last actions."""
    if seconds:
      self._round_trips.append(seconds)

  def report(self, blocked_seconds: float) -> dict[str, float]:
    """Returns the metrics since the last report.

    Args:
      blocked_seconds: Total time spent in adders, most of it waiting for the
        rate limiter if that limits the actors.
    """
    now = time.monotonic()
    seconds, self._since = max(now - self._since, 1e-9), now
    blocked, self._blocked = blocked_seconds - self._blocked, blocked_seconds
    batches, waits, round_trips = (
      [entries.popleft() for _ in range(len(entries))]
      for entries in (self._batches, self._waits, self._round_trips)
    )
    rows, computed, runs = zip(*batches) if batches else ((), (), ())
    row = {
      'requests_per_second': len(waits) / seconds,
      'rows_per_second': sum(rows) / seconds,
      'rows_per_batch': sum(rows) / max(len(batches), 1),
      'fill': sum(rows) / max(sum(computed), 1),
      'adding_share': min(blocked / seconds, 1.0),
    }
    for name, times in (
      ('wait', waits), ('run', runs), ('round_trip', round_trips)
    ):  # fmt: skip
      for percent in (50, 95):
        row[f'{name}_ms_p{percent}'] = (
          float(np.percentile(times, percent)) * 1e3 if times else 0.0
        )
    # The round trip without the wait for a batch and the batch itself.
    row['transport_ms_p50'] = max(
      0.0, row['round_trip_ms_p50'] - row['wait_ms_p50'] - row['run_ms_p50']
    )
    return row


class InferenceServer:
  """A single event loop over all connections; call `serve` in a thread.

  A batch is run when half of all rows are waiting, or when its first row has
  waited for `window_seconds`. An actor's error ends only its own connection,
  with a message; so does a policy that fails for its rows.
  """

  def __init__(
    self,
    spec: specs.EnvironmentSpec,
    store: state_store.StateStore,
    make_adder: Callable[[connections.ActorConnection], Any] | None = None,
    variables: Any = None,
    *,
    interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
    token: str = '',
    window_seconds: float = 0.001,
    stop: signals.StopSignal | None = None,
  ):
    """Starts to listen.

    Args:
      spec: Spec of one environment.
      store: Policy and states that compute the actions.
      make_adder: Maps a connection to its adder; None to store nothing.
      variables: Variable client of the policy, updated before each batch; None
        if the variables never change.
      interface: Network interface to listen on.
      token: The run's token; clients without it are refused.
      window_seconds: Time limit for the first row of a batch to wait.
      stop: Ends `serve`.
    """
    self._listener, self.address = addresses.listen(interface)
    self._spec = spec
    self._store = store
    self._make_adder = make_adder
    self._variables = variables
    self._fencing = callers.Fencing(token)
    self._window_seconds = window_seconds
    self._stop = stop or signals.StopSignal()
    self.statistics = Statistics()
    # Blocking calls of adders, which their time counts for. Meanwhile only the
    # affected connection is not read, which blocks its actor.
    self._waiter = worker_thread.WorkerThread('inference_adders')
    self._adding_seconds = self._waited_seconds = self._waiting_since = 0.0
    # Connections whose blocking call has ended, and its result.
    self._released: collections.deque[
      tuple[connections.ActorConnection, futures.Future]
    ] = collections.deque()
    self._selector = selectors.DefaultSelector()
    self._waker, self._wake_up = socket.socketpair()
    for stream in (self._waker, self._wake_up):
      stream.setblocking(False)
    self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
    self._selector.register(self._wake_up, selectors.EVENT_READ, self._wake)
    self._handshakes: set[connections.ActorConnection] = set()
    # The connection of each environment id, and those that wait for the policy.
    self._owners: dict[int, connections.ActorConnection] = {}
    self._pending: collections.deque[connections.ActorConnection] = (
      collections.deque()
    )

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
        for one in list(self._handshakes):
          if time.monotonic() > one.deadline:
            late = frames.ProtocolError(
              f'Waited {frames.HANDSHAKE_SECONDS:g} seconds for the '
              'handshake with which every connection begins.'
            )
            addresses.refuse(one.stream, late)
            self._end(one)
        while self._is_batch_due():
          self._run_batch()
    except BaseException:
      self._stop.set()  # Ends all other waits of a failed server.
      raise

  def report(self) -> dict[str, float]:
    """Returns metrics since the last report; see `Statistics`."""
    blocked, since = self._waited_seconds, self._waiting_since
    if since:
      blocked += time.perf_counter() - since
    row = self.statistics.report(self._adding_seconds + blocked)
    row['actors'] = len(set(self._owners.values()))
    return row

  # Exchanges.

  def _accept(self) -> None:
    with contextlib.suppress(BlockingIOError):
      if (stream := addresses.accept(self._listener)) is None:
        return
      stream.setblocking(False)
      one = connections.ActorConnection(stream)
      one.exchange = self._exchange(one)
      self._handshakes.add(one)
      self._resume(one)

  def _exchange(
    self, one: connections.ActorConnection
  ) -> Generator[Any, None, None]:
    """Serves an actor, from its handshake to its goodbye."""
    try:
      hello = yield from connections.receive_hello(one.stream)
      self._admit(one, hello)
      connections.send(one.stream, frames.WELCOME)
      while True:
        kind, round_trip = yield from one.receive()
        self.statistics.note_round_trip(round_trip)
        if kind == protocol.BYE:
          break
        chosen = one.chosen  # That led to these timesteps.
        if protocol.is_answerless(one.leaves[0]):
          one.forget_action()
        else:
          one.arrived_at = time.perf_counter()
          one.is_pending = True
          self._pending.append(one)
          while one.is_pending:
            yield selectors.EVENT_READ
          yield from one.send_answer()
          one.keep_action(self._variables.version if self._variables else 0)
        # After the answer, which need not wait for the adder.
        started_at = time.perf_counter()
        must_wait = one.write_step(kind, chosen)
        self._adding_seconds += time.perf_counter() - started_at
        if must_wait:
          yield functools.partial(_wait, one, one.adder)
      if (adder := one.take_adder()) is not None:
        yield adder.close
      connections.send(one.stream, protocol.GOODBYE)
    except frames.Disconnected:
      pass
    except (frames.ProtocolError, callers.FencedError) as error:
      addresses.refuse(one.stream, error)

  def _admit(
    self, one: connections.ActorConnection, hello: dict[str, Any]
  ) -> None:
    """Checks a handshake, and ends earlier connections of the actor."""
    connections.check_hello(
      hello, self._spec, self._store, self._owners, self._fencing
    )
    ids = hello['environment_ids']
    for earlier in {self._owners[i] for i in ids if i in self._owners}:
      self._end(earlier)
    one.admit(hello, self._spec, self._store, self._make_adder)
    self._owners.update(dict.fromkeys(ids, one))
    self._handshakes.discard(one)

  def _resume(self, one: connections.ActorConnection) -> None:
    """Continues an exchange until it waits again, or has ended."""
    wanted = next(one.exchange, None)
    if wanted is None:
      self._end(one)
    elif callable(wanted):
      self._watch(one, 0)
      self._call(one, wanted)
    else:
      self._watch(one, wanted)

  def _watch(self, one: connections.ActorConnection, events: int) -> None:
    """Selects events of a connection's socket; 0 for none."""
    before, one.events = one.events, events
    if events == before:
      return
    if before:
      self._selector.unregister(one.stream)
    if events:
      resume = functools.partial(self._resume, one)
      self._selector.register(one.stream, events, resume)

  def _end(self, one: connections.ActorConnection) -> None:
    """Frees a connection's environments; unwritten experience is lost."""
    if one.is_closed:
      return
    one.is_closed = True
    one.exchange.close()
    self._watch(one, 0)
    one.stream.close()
    self._handshakes.discard(one)
    self._owners = {i: own for i, own in self._owners.items() if own is not one}
    if one.is_pending:
      self._pending.remove(one)
    if (adder := one.take_adder()) is not None:
      self._call(one, adder.close)

  # Batches.

  def _wait_seconds(self) -> float:
    """Returns how long the next batch can wait."""
    if not self._pending:
      return _SLICE_SECONDS
    deadline = self._pending[0].arrived_at + self._window_seconds
    return min(max(0.0, deadline - time.perf_counter()), _SLICE_SECONDS)

  def _is_batch_due(self) -> bool:
    """Returns whether half of all rows are waiting, or one for too long.

    So one half of the environments steps while the policy runs for the other.
    """
    if not self._pending:
      return False
    rows = sum(one.batch_size for one in self._pending)
    half = min((len(self._owners) + 1) // 2, self._store.buckets[-1])
    waited = time.perf_counter() - self._pending[0].arrived_at
    return rows >= half or waited >= self._window_seconds

  def _run_batch(self) -> None:
    """Runs a batch of waiting connections, and answers them."""
    if self._variables is not None:
      self._variables.update()
    batch, rows = [], 0
    while self._pending:
      rows += self._pending[0].batch_size
      if batch and rows > self._store.buckets[-1]:
        break
      batch.append(self._pending.popleft())
      batch[-1].is_pending = False
    self._act_for(batch)

  def _act_for(self, batch: list[connections.ActorConnection]) -> None:
    """Acts for connections and answers them; if that fails, each alone."""
    started_at = time.perf_counter()
    ends = list(itertools.accumulate(one.batch_size for one in batch))
    rows = [slice(end - one.batch_size, end) for one, end in zip(batch, ends)]
    bucket = next(size for size in self._store.buckets if size >= ends[-1])
    inputs = self._store.inputs[bucket]
    for one, its_rows in zip(batch, rows):
      one.fill(inputs, its_rows)
    try:
      actions, extras = self._store.act(bucket, ends[-1])
    except Exception as error:
      if len(batch) > 1:
        for one in batch:
          self._act_for([one])
      else:
        addresses.refuse(batch[0].stream, error)
        self._end(batch[0])
      return
    run_seconds = time.perf_counter() - started_at
    waits = [started_at - one.arrived_at for one in batch]
    for one, its_rows in zip(batch, rows):
      one.take(actions, extras, its_rows)
    for one in batch:
      self._resume(one)
    self.statistics.note_batch(ends[-1], bucket, waits, run_seconds)

  # The other thread.

  def _call(
    self, one: connections.ActorConnection, call: Callable[[], Any]
  ) -> None:
    """Makes a blocking call of an adder, which is timed; `_wake` resumes."""

    def timed() -> None:
      self._waiting_since = time.perf_counter()
      try:
        call()
      finally:
        self._waited_seconds += time.perf_counter() - self._waiting_since
        self._waiting_since = 0.0

    def notify(outcome: futures.Future) -> None:
      self._released.append((one, outcome))
      with contextlib.suppress(BlockingIOError, OSError):
        self._waker.send(b'.')

    self._waiter.submit(timed).add_done_callback(notify)

  def _wake(self) -> None:
    """Resumes the exchanges whose call has ended; raises its error."""
    with contextlib.suppress(BlockingIOError):
      self._wake_up.recv(1 << 16)
    while self._released:
      one, outcome = self._released.popleft()
      error = outcome.exception()
      if error is not None and not isinstance(error, signals.Stopped):
        raise error
      if error is None and not one.is_closed:
        self._resume(one)

  def close(self) -> None:
    """Closes all connections and the thread."""
    for one in [*self._handshakes, *self._owners.values()]:
      self._end(one)
    self._waiter.close(_CLOSE_SECONDS)
    self._selector.close()
    self._listener.close()
    self._wake_up.close()
    self._waker.close()


def _wait(one: connections.ActorConnection, adder: Any) -> None:
  """Waits for the adder of a connection, unless that has ended meanwhile."""
  if not one.is_closed:
    adder.wait()
