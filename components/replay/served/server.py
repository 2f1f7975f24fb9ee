"""Replay server: local tables for actors and a learner in other processes.

Each connection has a thread, which reads and writes blocking sockets. A message
costs 10 µs of each side; Python's gRPC takes 25 times as long.
"""

import contextlib
import dataclasses
import functools
import io
import select
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from repertory.components.config import settings
from repertory.components.network import (
  addresses,
  callers,
  frames,
  network_interfaces,
)
from repertory.components.replay import tables as tables_lib
from repertory.components.replay.local import snapshots
from repertory.components.replay.local import table as table_lib
from repertory.components.replay.served import protocol

# Interval at which waits check whether server and client are still there.
_SLICE_SECONDS = 0.2
# Time limit for the threads to end.
_STOP_SECONDS = 5.0


class ReplayServer:
  """Serves replay tables from threads of this process.

  Batches follow from the seed and the order of inserts. Clients without the
  run's token are refused before their data is read; what one client does wrong
  ends its connection alone, with the reason.

  Attributes:
    address: Address for clients; see `addresses`.
  """

  def __init__(
    self,
    tables: Sequence[tables_lib.TableSpec],
    seed: int,
    *,
    checkpoint_directory: str = '',
    interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
    token: str = '',
  ):
    """Restores the tables from a snapshot, if there is one, and serves them.

    Args:
      tables: Descriptions of the tables.
      seed: Seed of the samplers, unless a snapshot has their state.
      checkpoint_directory: Directory of snapshots; '' for none.
      interface: Network interface to listen on.
      token: Secret that authenticates clients.

    Raises:
      CheckpointError: If the snapshot cannot be read, or is of other tables.
    """
    self._directory = checkpoint_directory
    self._tables = {
      table.name: table_lib.Table(table, seed + number)
      for number, table in enumerate(tables)
    }
    for table in self._tables.values() if checkpoint_directory else ():
      contents = snapshots.read(
        checkpoint_directory, table.description, compressed=True
      )
      if contents is not None:
        with snapshots.reading(f'{checkpoint_directory} of a checkpoint'):
          table.restore(contents)
    self._fencing = callers.Fencing(token)
    self._stopped = threading.Event()
    self._lock = threading.Lock()
    self._connections: dict[socket.socket, threading.Thread] = {}
    self._listener, self.address = addresses.listen(interface)
    self._acceptor = threading.Thread(
      target=self._accept, name='replay_server', daemon=True
    )
    self._acceptor.start()

  def stop(self) -> None:
    """Ends all connections, and their threads."""
    self._stopped.set()
    self._acceptor.join(_STOP_SECONDS)
    self._listener.close()
    with self._lock:
      connections = list(self._connections.items())
    for stream, _ in connections:
      with contextlib.suppress(OSError):  # It ends by itself.
        stream.shutdown(socket.SHUT_RDWR)
    for _, thread in connections:
      thread.join(_STOP_SECONDS)

  def _accept(self) -> None:
    while not self._stopped.is_set():
      if not select.select([self._listener], [], [], _SLICE_SECONDS)[0]:
        continue
      with contextlib.suppress(OSError):  # The client has gone again.
        stream = addresses.accept(self._listener)
        if stream is None:
          continue
        thread = threading.Thread(
          target=self._serve, args=(stream,), name='replay_client', daemon=True
        )
        with self._lock:
          self._connections[stream] = thread
        thread.start()

  def _serve(self, stream: socket.socket) -> None:
    """Serves a connection, from its handshake to its end."""
    with stream, stream.makefile('rb') as opened:
      try:
        stream.settimeout(frames.HANDSHAKE_SECONDS)
        reader = _Reader(opened)
        serve = self._admit(reader)
        stream.settimeout(None)
        stream.sendall(frames.header(frames.WELCOME, 0))
        serve(stream, reader)
      except (frames.ProtocolError, callers.FencedError) as error:
        addresses.refuse(stream, error)
      except (frames.Disconnected, OSError):
        pass
      except Exception as error:
        logging.exception('The replay server failed to serve a client.')
        addresses.refuse(stream, error)
      finally:
        with self._lock:
          del self._connections[stream]

  def _admit(self, reader: '_Reader') -> Callable[..., None]:
    """Checks a handshake; returns the function that serves the connection."""
    kind, size = reader.read_header()
    frames.check_hello(kind, size)
    hello = frames.parse_json(reader.read(size).tobytes())
    self._fencing.check_token(
      callers.Caller('A client', token=str(hello.get('token')))
    )
    if hello.get('protocol') != protocol.PROTOCOL:
      raise frames.ProtocolError(
        f'protocol must be {protocol.PROTOCOL}, got {hello.get("protocol")!r}.'
      )
    purpose = hello.get('purpose')
    if purpose in (protocol.STATUS, protocol.SNAPSHOT):
      return {
        protocol.STATUS: self._serve_status,
        protocol.SNAPSHOT: self._serve_snapshot,
      }[purpose]
    table = self._find_table(hello)
    if purpose == protocol.WRITE:
      return functools.partial(self._serve_writer, table)
    if purpose == protocol.PRIORITIES_OF:
      return functools.partial(self._serve_priorities, table)
    if purpose == protocol.SAMPLE:
      size = hello.get('batch_size')
      if not isinstance(size, int) or size < 1:
        raise frames.ProtocolError(
          f'batch_size must be at least 1, got {size!r}.'
        )
      return functools.partial(self._serve_batches, table, size)
    raise frames.ProtocolError(f'purpose must be known, got {purpose!r}.')

  def _find_table(self, hello: Mapping[str, Any]) -> table_lib.Table:
    table = self._tables.get(str(hello.get('table')))
    if table is None:
      raise frames.ProtocolError(
        f'table must be {" or ".join(self._tables)}, got '
        f'{hello.get("table")!r}.'
      )
    expected = protocol.describe(table.description)
    if hello.get('signature') != expected:
      raise frames.ProtocolError(
        f"signature of table '{table.description.name}' must be {expected} "
        f'(shape, dtype), got {hello.get("signature")}.'
      )
    return table

  # Exchanges, by purpose of the connection.

  def _serve_writer(
    self, table: table_lib.Table, stream: socket.socket, reader: '_Reader'
  ) -> None:
    """Inserts items; reads no further ones while the rate limiter blocks."""
    description = table.description
    limit = protocol.max_payload(description)
    arrays: dict[int, Any] = {}
    num_arrays = oldest = num_items = 0
    queue = table.open_queue(None)
    try:
      while True:
        kind, size = reader.read_header()
        if kind not in (protocol.ARRAYS, protocol.ITEMS) or size > limit:
          raise frames.ProtocolError(
            f'A writer must send arrays or items of at most {limit} bytes, got '
            f'a frame of kind {kind} with {size}.'
          )
        payload = reader.read(size)
        if kind == protocol.ARRAYS:
          for array in protocol.unpack_arrays(payload, description):
            arrays[num_arrays] = array
            num_arrays += 1
          continue
        needed, items = protocol.unpack_items(payload, arrays, description)
        num_items += len(items.priorities)
        num_pending = table.put(queue, items)
        while num_pending and self._is_used(stream):
          if table.wait_for_queue(queue, num_pending - 1, _SLICE_SECONDS):
            num_pending = queue.num_pending
            if num_pending:
              _send_count(stream, num_items - num_pending)
        _send_count(stream, num_items - num_pending)
        for number in range(oldest, min(needed, num_arrays)):
          del arrays[number]
        oldest = max(oldest, needed)
    finally:
      table.close_queue(queue)

  def _serve_batches(
    self,
    table: table_lib.Table,
    batch_size: int,
    stream: socket.socket,
    reader: '_Reader',
  ) -> None:
    """Samples a batch for each demand."""
    leaves = protocol.batch_leaves(table.description)
    frame, arrays = frames.make_frame(leaves, batch_size)
    size = len(frame) - frames.HEADER_SIZE
    frame[: frames.HEADER_SIZE] = frames.header(protocol.BATCH, size)
    while True:
      reader.expect(protocol.DEMAND)
      while self._is_used(stream):
        if table.sample(batch_size, _SLICE_SECONDS, arrays) is not None:
          stream.sendall(frame)
          break
      else:
        return

  def _serve_priorities(
    self, table: table_lib.Table, stream: socket.socket, reader: '_Reader'
  ) -> None:
    """Updates priorities."""
    while True:
      kind, size = reader.read_header()
      is_pairs = 0 < size <= protocol.MAX_BYTES and size % 16 == 0
      if kind != protocol.PRIORITIES or not is_pairs:
        raise frames.ProtocolError(
          'Updates of priorities must be pairs of 16 bytes, got a frame of '
          f'kind {kind} with {size}.'
        )
      keys, priorities = np.split(reader.read_array(size), 2)
      priorities = priorities.view(np.float64)
      protocol.check_priorities(priorities)
      table.update_priorities(keys.view(np.uint64), priorities)
      stream.sendall(frames.header(protocol.UPDATED, 0))

  def _serve_status(self, stream: socket.socket, reader: '_Reader') -> None:
    """Sends the status of all tables."""
    while True:
      reader.expect(protocol.ASK)
      answer = {
        name: dataclasses.astuple(table.status())
        for name, table in self._tables.items()
      }
      stream.sendall(frames.pack_json(protocol.ANSWER, answer))

  def _serve_snapshot(self, stream: socket.socket, reader: '_Reader') -> None:
    """Fixes the contents of all tables, and writes them."""
    if not self._directory:
      raise frames.ProtocolError(
        'checkpoint_directory must be given to write snapshots.'
      )
    reader.expect(protocol.ASK)
    contents = [
      (table.description, table.copy()) for table in self._tables.values()
    ]
    stream.sendall(frames.pack_json(protocol.ANSWER, {}))
    answer = {}
    try:
      answer['path'] = snapshots.write(self._directory, contents)
    except OSError as error:
      answer['error'] = settings.text_of(error)
    stream.sendall(frames.pack_json(protocol.ANSWER, answer))

  def _is_used(self, stream: socket.socket) -> bool:
    """Returns whether neither server nor client has ended the connection."""
    if self._stopped.is_set():
      return False
    poll = select.poll()
    poll.register(stream, _CLOSED)
    return not poll.poll(0)


# Where a system has no event for it, data that was sent before hides the end.
_CLOSED = getattr(select, 'POLLRDHUP', 0) | select.POLLHUP | select.POLLERR


class _Reader:
  """Reads frames from a socket that blocks."""

  def __init__(self, opened: io.BufferedReader):
    self._opened = opened
    self._head = bytearray(frames.HEADER_SIZE)

  def read_header(self) -> tuple[int, int]:
    """Returns kind and payload size of the next frame."""
    self._fill(memoryview(self._head))
    kind, size, _ = frames.parse_header(self._head)
    return kind, size

  def expect(self, kind: int) -> None:
    """Reads a frame without payload."""
    found, size = self.read_header()
    if found != kind or size:
      raise frames.ProtocolError(
        f'Expected a frame of kind {kind}, got kind {found} with {size} bytes.'
      )

  def read(self, size: int) -> memoryview:
    """Reads a payload into memory of its own."""
    return self.read_array(size).data

  def read_array(self, size: int) -> np.ndarray:
    """Reads a payload, uint8 `[size]`."""
    payload = np.empty([size], np.uint8)
    self._fill(payload.data)
    return payload

  def _fill(self, view: memoryview) -> None:
    if self._opened.readinto(view) < len(view):
      raise frames.Disconnected


def _send_count(stream: socket.socket, count: int) -> None:
  size = protocol.COUNT.size
  stream.sendall(
    frames.header(protocol.INSERTED, size) + protocol.COUNT.pack(count)
  )
