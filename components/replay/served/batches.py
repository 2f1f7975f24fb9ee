"""Batches from a replay server, and updates of its priorities."""

import contextlib
import time

import numpy as np
import tree

from repertory.components import types
from repertory.components.network import frames
from repertory.components.replay import batches, tables
from repertory.components.replay.served import connection as connection_lib
from repertory.components.replay.served import protocol
from repertory.components.runtime import signals

# Priority updates that may be pending before the learner has to wait.
_MAX_PENDING = 8
# Time limit for the last updates.
_CLOSE_SECONDS = 5.0


class ServedBatches(batches.Batches):
  """Iterator over batches of a table on a replay server.

  The server assembles each batch, in the layout in which it is received; leaves
  are arrays. Prefetched samples are stale, and the rate limiter counts them:
  there are at most `prefetch` batches of them, or none without prefetch.
  """

  def __init__(
    self,
    connection: connection_lib.ServerConnection,
    table: tables.TableSpec,
    batch_size: int,
    *,
    prefetch: int = 1,
  ):
    """Connects to the server, and requests the first batches.

    Args:
      connection: Its timeout and stop signal end a wait.
      table: Description of the table to sample.
      batch_size: B, at least 1.
      prefetch: Batches sampled ahead of the learner, 0 for none.
    """
    batches.check_sizes(batch_size, prefetch)
    self._connection = connection
    self._table = table
    self._batch_size = batch_size
    self._leaves = protocol.batch_leaves(table)
    self._spec = batches.sample_spec(table.signature, batch_size)
    self._num_demanded = 0
    self._frame: memoryview | None = None
    self._prefetch = prefetch
    self._stream = connection.open(
      protocol.SAMPLE, table, batch_size=batch_size
    )
    self._demand(prefetch)

  @property
  def element_spec(self) -> types.Sample:
    return self._spec

  def __next__(self) -> types.Sample:
    self._demand(max(1, self._prefetch))
    connection, table = self._connection, self._table
    sample = self._wait(
      self._receive, table, connection, lambda: connection.look(table)
    )
    self._demand(self._prefetch)
    return sample

  def close(self) -> None:
    self._is_closed = True
    self._stream.close()

  def _demand(self, num_batches: int) -> None:
    """Requests batches, up to a number that is outstanding."""
    count = num_batches - self._num_demanded
    if count > 0:
      demand = frames.header(protocol.DEMAND, 0) * count
      self._stream.send(memoryview(demand), 'a request')
      self._num_demanded = num_batches

  def _receive(self, seconds: float) -> types.Sample | None:
    """Continues to receive a batch; returns it when it is complete."""
    del seconds  # The stream has its own.
    if self._frame is None:
      self._frame, self._arrays = frames.make_frame(
        self._leaves, self._batch_size
      )
      self._unfilled = self._head = self._frame[: frames.HEADER_SIZE]
    try:
      self._unfilled = self._stream.receive_some(self._unfilled)
      if self._head and not self._unfilled:
        payload = self._frame[frames.HEADER_SIZE :]
        self._stream.check_header(
          self._head, protocol.BATCH, len(payload), 'a batch'
        )
        self._head = None
        self._unfilled = self._stream.receive_some(payload)
    except frames.Disconnected as error:
      if self._is_closed:
        raise signals.Stopped from None
      raise self._stream.lost() from error
    if self._unfilled:
      return None
    self._frame = None
    self._num_demanded -= 1
    return tree.unflatten_as(self._spec, self._arrays)


class ServedPriorities(batches.Priorities):
  """Updates priorities of a table on a replay server.

  Updates keep their order, and do not wait for the server unless several are
  pending.
  """

  def __init__(
    self,
    connection: connection_lib.ServerConnection,
    table: tables.TableSpec,
    floor: float,
  ):
    super().__init__(floor)
    self._connection = connection
    self._stream = connection.open(protocol.PRIORITIES_OF, table)
    self._table = table.name
    self._num_pending = 0

  def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    priorities = self._raise_to_floor(priorities).astype(np.float64)
    data = keys.astype(np.uint64).tobytes() + priorities.tobytes()
    self._settle(_MAX_PENDING - 1, self._connection.stop)
    header = frames.header(protocol.PRIORITIES, len(data))
    self._stream.send(memoryview(header + data), 'priorities')
    self._num_pending += 1

  def flush(self) -> None:
    self._settle(0, signals.StopSignal())

  def close(self) -> None:
    # What the server does not read in time is lost with the connection.
    left = memoryview(bytearray(self._num_pending * frames.HEADER_SIZE))
    deadline = time.monotonic() + _CLOSE_SECONDS
    with contextlib.suppress(frames.Disconnected):
      while left and time.monotonic() < deadline:
        left = self._stream.receive_some(left)
    self._stream.close()

  def _settle(self, most: int, stop: signals.StopSignal) -> None:
    """Waits until at most `most` updates are pending."""
    updated = memoryview(bytearray(frames.HEADER_SIZE))
    what = f"updates of priorities of table '{self._table}'"
    while self._num_pending > most:
      self._stream.receive(protocol.UPDATED, updated, what, stop)
      self._num_pending -= 1
