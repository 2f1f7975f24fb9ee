"""Writer of items to a replay server."""

import collections
import itertools
import select
import time
from collections.abc import Mapping, Sequence

import numpy as np

from repertory.components.network import frames
from repertory.components.replay import tables, writers
from repertory.components.replay.local import stored_arrays
from repertory.components.replay.served import connection as connection_lib
from repertory.components.replay.served import protocol

_READ_BYTES = 4096
# The most parts that one system call accepts on all systems.
_MAX_PARTS = 64


class ServedWriter(writers.Writer):
  """Writes items to a replay server.

  Nothing but `wait` blocks: what the server does not read at once is sent
  later, for it stops reading while the rate limiter blocks its table. Images
  are compressed, and all large leaves are sent once.
  """

  _place: connection_lib.ServerConnection
  _is_open = False

  def open(self, num_alive: int) -> None:
    self._num_alive = num_alive * len(self._packing.whole)
    self._num_arrays = self._num_put = self._num_inserted = 0
    self._unsent: collections.deque[memoryview] = collections.deque()
    self._received = bytearray()
    self._stream = self._place.open(protocol.WRITE, self.table)
    self._is_open = True
    self._stream.socket.setblocking(False)

  def keep(self, leaves: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
    return {i: self._send_arrays(i, leaf) for i, leaf in leaves.items()}

  def put(self, leaves: Sequence[np.ndarray]) -> None:
    packing = self._packing
    count = len(leaves[0])
    if not count:
      return
    records = packing.pack(leaves)
    new = [i for i in packing.whole if leaves[i].ndim > 1]
    for i in new:
      packing.check(i, leaves[i])
    priorities = np.array([self._next_priority() for _ in range(count)])
    numbers = [
      self._send_arrays(i, leaves[i]) if i in new else leaves[i]
      for i in packing.whole
    ]
    items = protocol.pack_items(
      max(0, self._num_arrays - self._num_alive),
      priorities,
      records,
      np.array(numbers, np.uint64),
    )
    self._unsent.append(memoryview(items))
    self.num_items += count
    self._num_put += count
    self._exchange()

  def is_ahead(self) -> bool:
    if self._num_pending:
      self._exchange()
    return super().is_ahead()

  def _send_arrays(self, index: int, leaf: np.ndarray) -> np.ndarray:
    """Enqueues arrays of a leaf `[K, ...]`; returns their numbers `[K]`."""
    arrays: list = list(np.array(leaf))  # The caller may change its own.
    if index in self._packing.images:
      arrays = [stored_arrays.compress(array) for array in arrays]
    self._unsent += protocol.pack_arrays(index, arrays)
    first = self._num_arrays
    self._num_arrays += len(arrays)
    return np.arange(first, self._num_arrays, dtype=np.uint64)

  def _exchange(self) -> None:
    """Sends and receives as much as is possible without waiting."""
    stream = self._stream.socket
    try:
      while self._unsent:
        num_sent = stream.sendmsg(itertools.islice(self._unsent, _MAX_PARTS))
        while self._unsent and num_sent >= len(self._unsent[0]):
          num_sent -= len(self._unsent.popleft())
        if num_sent:
          self._unsent[0] = self._unsent[0][num_sent:]
    except OSError:
      pass  # Full, or ended; then the server may have sent a reason.
    try:
      while data := stream.recv(_READ_BYTES):
        self._received += data
        self._read_counts()
    except BlockingIOError:
      self._num_pending = self._num_put - self._num_inserted
      return
    except OSError as error:
      raise self._stream.lost() from error
    raise self._stream.lost()

  def _read_counts(self) -> None:
    """Takes all complete frames from the received bytes."""
    while len(self._received) >= frames.HEADER_SIZE:
      head = self._received[: frames.HEADER_SIZE]
      kind, size, _ = frames.parse_header(head)
      end = frames.HEADER_SIZE + size
      if len(self._received) < end:
        return
      payload = self._received[frames.HEADER_SIZE : end]
      del self._received[:end]
      if kind == frames.REFUSED:
        raise self._stream.refused(frames.parse_json(payload))
      (self._num_inserted,) = protocol.COUNT.unpack(payload)

  def _try_to_drain(self, num_pending: int, seconds: float) -> bool:
    if not self._is_open:
      return True
    deadline = time.monotonic() + seconds
    poll = select.poll()
    while True:
      self._exchange()
      if self._num_pending <= num_pending:
        return True
      left = deadline - time.monotonic()
      if left <= 0 or self._place.stop.is_set():
        return False
      events = select.POLLOUT if self._unsent else 0
      poll.register(self._stream.socket, select.POLLIN | events)
      poll.poll(left * 1000)

  def _close(self) -> None:
    if self._is_open:
      self._stream.close()
      self._is_open = False

  def _ask(self) -> tables.TableInfo:
    return self._place.look(self.table)
