"""Gossip of one learner: links to its neighbors, and their wire format.

A link goes one way, over an address of `network.addresses`. It begins with a
line of JSON, an object with the sender's identity; links of strangers are
closed. Then come messages: 16 bytes (version, length) and a vector's raw bytes.
They are not acknowledged.
"""

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from repertory.components.gossip import mixing
from repertory.components.network import addresses, callers, network_interfaces

_HEADER = struct.Struct('<qQ')
_MAX_LINE_BYTES = 1 << 16

# Time limit for each step of a handshake. Messages have none: the link of a
# neighbor that hangs ends once that is replaced.
TIMEOUT_SECONDS = 20.0
_JOIN_SECONDS = 5.0
# Delay before a broken link is tried again.
_RETRY_SECONDS = 0.25


class Participant:
  """Sends a learner's variables to its neighbors, and mixes in theirs.

  GALA's algorithm 1, lines 5 to 8: after an update, it sends its variables and
  then moves towards those received. Unlike there, it need not have received
  from all of its neighbors, so a lost one blocks nobody.

  Each link has its own thread, which keeps only the newest variables, so the
  learner never waits. A broken link is reconnected, at the neighbor's current
  address. Of a neighbor that was replaced, only the newest generation is
  accepted.

  Attributes:
    address: The address for its in-neighbors.
    num_messages: Number of messages received.
    age_seconds: Mean age of the last mixed messages; None before the first.
    age_steps: Mean lead of its learner steps over theirs.
  """

  age_seconds: float | None = None
  age_steps: float | None = None

  def __init__(
    self,
    arrays: Mapping[str, np.ndarray],
    graph: str,
    names: Sequence[str],
    *,
    find: Callable[[str], str | None],
    caller: callers.Caller,
    share: float | None = None,
    interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
  ):
    """Starts to listen, and to connect to its out-neighbors.

    Args:
      arrays: The learner's variables, by name.
      graph: One of `choices.GRAPHS`.
      names: Names of all learners, in the order of the graph.
      find: Returns an out-neighbor's address; None if it is not known.
      caller: Identity of this learner, one of the names.
      share: See `mixing.neighbor_weight`.
      interface: Network interface to listen on.
    """
    index, size = names.index(caller.name), len(names)
    self._weight = mixing.neighbor_weight(graph, size, share)
    self._neighbors = [
      names[i] for i in mixing.in_neighbors(graph, size, index)
    ]
    self._like = mixing.join(arrays)
    self._find = find
    self._hello = json.dumps(caller._asdict()).encode() + b'\n'
    self._fencing = callers.Fencing(caller.token)
    self.num_messages = 0
    self._is_closed = threading.Event()
    # Guards what follows; notified of own variables, and when it is closed.
    self._changed = threading.Condition()
    self._own: tuple[int, memoryview] | None = None
    # By name: learner steps, variables `[P]`, and local time of arrival.
    self._unread: dict[str, tuple[int, np.ndarray, float]] = {}
    # Open sockets, with the name of a sender after its handshake.
    self._streams: dict[socket.socket, str] = {}
    self._threads: list[threading.Thread] = []
    self._listener, self.address = addresses.listen(interface)
    self._listener.setblocking(True)
    self._start(self._accept)
    for i in mixing.out_neighbors(graph, size, index):
      self._start(self._send, names[i])

  def exchange(
    self, version: int, arrays: Mapping[str, np.ndarray]
  ) -> dict[str, np.ndarray] | None:
    """Sends the variables, and returns them mixed.

    Args:
      version: Learner steps so far.
      arrays: The learner's variables, by name.

    Returns:
      Arrays by the same names; None if no messages have come.
    """
    own = mixing.join(arrays)
    with self._changed:
      self._own = version, own.data.cast('B')
      self._changed.notify_all()
      unread, self._unread = self._unread, {}
    if not unread:
      return None
    received = [unread[name] for name in self._neighbors if name in unread]
    versions, vectors, times = zip(*received)
    self.age_seconds = time.monotonic() - sum(times) / len(times)
    self.age_steps = version - sum(versions) / len(versions)
    return mixing.split(mixing.mix(own, vectors, self._weight), arrays)

  def close(self) -> None:
    """Closes all links and threads; unsent messages are lost."""
    with self._changed:
      self._is_closed.set()
      self._changed.notify_all()
      for stream in (self._listener, *self._streams):
        _shut(stream)
      threads = list(self._threads)
    for thread in threads:
      thread.join(_JOIN_SECONDS)
    self._listener.close()

  def _start(self, run: Callable[..., None], *arguments: Any) -> None:
    """Runs a link in a thread, until it ends or the participant is closed."""
    thread = threading.Thread(
      target=run, args=arguments, name='gossip', daemon=True
    )
    with self._changed:
      self._threads = [one for one in self._threads if one.is_alive()]
      thread.start()
      self._threads.append(thread)

  @contextlib.contextmanager
  def _open(self, stream: socket.socket) -> Iterator[None]:
    """Keeps a socket among the open ones, then closes it."""
    try:
      with self._changed:
        if self._is_closed.is_set():
          raise ConnectionError('The participant has been closed.')
        self._streams[stream] = ''
      yield
    finally:
      with self._changed:
        self._streams.pop(stream, None)
      stream.close()

  # To out-neighbors.

  def _send(self, neighbor: str) -> None:
    """Sends the newest variables to a neighbor, and reconnects to it."""
    while not self._is_closed.is_set():
      try:
        if (address := self._find(neighbor)) is not None:
          self._send_while_linked(address)
      except Exception as error:  # The coordinator may be gone, too.
        if not self._is_closed.is_set():
          logging.info('The link to %s broke: %s', neighbor, error)
      self._is_closed.wait(_RETRY_SECONDS)

  def _send_while_linked(self, address: str) -> None:
    stream = addresses.connect(address, TIMEOUT_SECONDS)
    with self._open(stream):
      stream.settimeout(None)
      stream.sendall(self._hello)
      sent = None
      while not self._is_closed.is_set():
        with self._changed:
          self._changed.wait_for(
            lambda before=sent: (
              self._own is not before or self._is_closed.is_set()
            )
          )
          sent = self._own
        if sent is not None:
          version, data = sent
          stream.sendall(_HEADER.pack(version, len(data)))
          stream.sendall(data)

  # From in-neighbors.

  def _accept(self) -> None:
    while not self._is_closed.is_set():
      try:
        stream = addresses.accept(self._listener)
      except OSError as error:
        if not self._is_closed.wait(_RETRY_SECONDS):  # Too many open files?
          logging.warning('Could not accept a neighbor: %s', error)
        continue
      if stream is not None:
        self._start(self._receive, stream)

  def _receive(self, stream: socket.socket) -> None:
    """Receives from one neighbor until its link ends."""
    try:
      with self._open(stream), stream.makefile('rb') as file:
        stream.settimeout(TIMEOUT_SECONDS)
        name = self._admit(file.readline(_MAX_LINE_BYTES))
        stream.settimeout(None)
        with self._changed:
          for other, its_name in self._streams.items():
            if its_name == name:
              _shut(other)
          self._streams[stream] = name
        while True:
          self._take(file, name)
    except OSError as error:
      if not self._is_closed.is_set():
        logging.info('A link between learners ended: %s', error)

  def _admit(self, line: bytes) -> str:
    """Checks a handshake; returns the neighbor's name."""
    try:
      caller = callers.Caller(**json.loads(line))
      self._fencing.check(caller)
    except (
      ValueError, TypeError, LookupError, AttributeError, RecursionError
    ) as error:  # fmt: skip
      raise ConnectionError(f'No caller identity: {line[:200]!r}.') from error
    if caller.name not in self._neighbors:
      raise ConnectionError(f'{caller.name!r} is not a neighbor.')
    return caller.name

  def _take(self, file: Any, name: str) -> None:
    """Waits for one message and keeps it."""
    header = bytearray(_HEADER.size)
    _fill(file, header)
    version, length = _HEADER.unpack(header)
    if length != self._like.nbytes:
      raise ConnectionError(f'A message of {name} has {length} bytes.')
    vector = np.empty_like(self._like)
    _fill(file, vector.data.cast('B'))
    with self._changed:
      self.num_messages += 1
      self._unread[name] = version, vector, time.monotonic()


def _shut(stream: socket.socket) -> None:
  """Ends all waits for a socket, also in other threads."""
  with contextlib.suppress(OSError):
    stream.shutdown(socket.SHUT_RDWR)


def _fill(file: Any, buffer: bytearray | memoryview) -> None:
  """Reads until a buffer is full; raises OSError if the stream ends before."""
  if file.readinto(buffer) < len(buffer):
    raise ConnectionError('The other side has gone.')
