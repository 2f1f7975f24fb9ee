"""Gossip of one learner: participant, receiver, sender and wire format.

A link goes one way, over an address of `inference.addresses`. It begins with a
line of JSON, an object with the sender's identity; links of strangers are
closed. Then come messages: 16 bytes (version, length) and a vector's raw bytes.
They are not acknowledged.
"""

import contextlib
import functools
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from repertory.components.gossip import mixing
from repertory.components.inference import addresses
from repertory.components.runtime import callers, network_interfaces

_HEADER = struct.Struct('<qQ')
_MAX_LINE_BYTES = 1 << 16

# Time limit for a handshake. Messages have none: the link of a neighbor that
# hangs ends once that is replaced.
TIMEOUT_SECONDS = 20.0
_JOIN_SECONDS = 5.0
# Delay before a broken link is tried again.
_RETRY_SECONDS = 0.25


class Message(NamedTuple):
  """A neighbor's variables at one of its learner steps.

  Attributes:
    version: Its learner steps.
    vector: Its variables, `[P]`; see `mixing.join`.
    arrived_at: Local time of arrival, in seconds.
  """

  version: int
  vector: np.ndarray
  arrived_at: float


class Inlet:
  """Receives the messages of neighbors, with a thread for each.

  It keeps the newest message of each. A neighbor's error ends only its own
  link. Of a neighbor that was replaced, only the newest generation is accepted.

  Attributes:
    address: The address it listens on.
    num_messages: Number of messages received so far.
  """

  def __init__(
    self,
    neighbors: Sequence[str],
    like: np.ndarray,
    fencing: callers.Fencing,
    interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
  ):
    """Starts to listen.

    Args:
      neighbors: Names of the senders.
      like: A vector of the expected size and dtype.
      fencing: Checks callers, with the run's token.
      interface: Network interface to listen on.
    """
    self.num_messages = 0
    self._neighbors = list(neighbors)
    self._like = like
    self._fencing = fencing
    self._is_closed = threading.Event()
    self._lock = threading.Lock()
    self._unread: dict[str, Message] = {}
    # Name of the sender, '' during the handshake.
    self._streams: dict[socket.socket, str] = {}
    self._listener, self.address = addresses.listen(
      addresses.make_address(interface)
    )
    self._listener.setblocking(True)
    self._thread = _start('gossip_inlet', self._accept)

  def take_unread(self) -> list[Message]:
    """Returns the newest unread message of each neighbor, in their order."""
    with self._lock:
      unread, self._unread = self._unread, {}
    return [unread[name] for name in self._neighbors if name in unread]

  def close(self) -> None:
    """Closes all links and threads."""
    self._is_closed.set()
    _shut(self._listener)
    self._thread.join(_JOIN_SECONDS)
    self._listener.close()

  def _accept(self) -> None:
    threads = []
    while not self._is_closed.is_set():
      try:
        stream, _ = self._listener.accept()
      except OSError as error:
        if not self._is_closed.wait(_RETRY_SECONDS):  # Too many open files?
          logging.warning('Could not accept a neighbor: %s', error)
        continue
      if addresses.is_of_this_user(stream):
        with self._lock:
          self._streams[stream] = ''
        threads = [one for one in threads if one.is_alive()]
        threads.append(_start('gossip_link', self._serve, stream))
      else:
        stream.close()
    with self._lock:
      for stream in self._streams:
        _shut(stream)
    for thread in threads:
      thread.join(_JOIN_SECONDS)

  def _serve(self, stream: socket.socket) -> None:
    """Receives from one neighbor until its link ends."""
    limit = threading.Timer(TIMEOUT_SECONDS, _shut, [stream])
    limit.daemon = True
    limit.start()
    try:
      addresses.tune(stream)
      with stream.makefile('rb') as file:
        name = self._admit(file.readline(_MAX_LINE_BYTES))
        limit.cancel()
        with self._lock:
          for other, its_name in self._streams.items():
            if its_name == name:
              _shut(other)
          self._streams[stream] = name
        while True:
          self._take(file, name)
    except OSError as error:
      if not self._is_closed.is_set():
        logging.info('A link between learners ended: %s', error)
    finally:
      limit.cancel()
      with self._lock:
        del self._streams[stream]
      stream.close()

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
      raise ConnectionError(f'{caller.name!r} is no neighbor.')
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
    with self._lock:
      self.num_messages += 1
      self._unread[name] = Message(version, vector, time.monotonic())


class Outlet:
  """Sends the newest variables to one neighbor, in a thread of its own.

  It never blocks the learner. A broken link is reconnected, at the neighbor's
  current address.
  """

  def __init__(
    self,
    neighbor: str,
    find: Callable[[], str | None],
    caller: callers.Caller,
  ):
    """Starts the thread; `find` returns the neighbor's current address."""
    self._neighbor = neighbor
    self._find = find
    self._hello = json.dumps(caller._asdict()).encode() + b'\n'
    self._newest: tuple[int, memoryview] = 0, memoryview(b'')
    self._stream: socket.socket | None = None
    self._is_closed = threading.Event()
    self._has_come = threading.Event()
    self._thread = _start(f'gossip_to_{neighbor}', self._run)

  def put(self, version: int, vector: np.ndarray) -> None:
    """Sets the next vector, which must not change, and its learner steps."""
    self._newest = version, vector.data.cast('B')
    self._has_come.set()

  def close(self) -> None:
    """Ends the thread; unsent messages are lost."""
    self._is_closed.set()
    self._has_come.set()
    if (stream := self._stream) is not None:
      _shut(stream)
    self._thread.join(_JOIN_SECONDS)

  def _run(self) -> None:
    while not self._is_closed.is_set():
      try:
        self._send_while_linked()
      except Exception as error:  # The coordinator may be gone, too.
        if not self._is_closed.is_set():
          logging.info('The link to %s broke: %s', self._neighbor, error)
      self._is_closed.wait(_RETRY_SECONDS)

  def _send_while_linked(self) -> None:
    """Connects to the neighbor, and sends messages until the link breaks."""
    address = self._find()
    if address is None:
      return
    with contextlib.closing(
      addresses.connect(address, TIMEOUT_SECONDS)
    ) as stream:
      self._stream = stream
      if self._is_closed.is_set():
        return
      stream.settimeout(None)
      stream.sendall(self._hello)
      self._has_come.wait()
      while not self._is_closed.is_set():
        self._has_come.clear()
        version, data = self._newest
        stream.sendall(_HEADER.pack(version, len(data)))
        stream.sendall(data)
        self._has_come.wait()


class Participant:
  """Sends a learner's variables to its neighbors, and mixes in theirs.

  GALA's algorithm 1, lines 5 to 8: after an update, it sends its variables and
  then moves towards those received. Unlike there, it need not have received
  from all of its neighbors, so a lost one blocks nobody.

  Attributes:
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
    neighbors = [names[i] for i in mixing.in_neighbors(graph, size, index)]
    self._inlet = Inlet(
      neighbors, mixing.join(arrays), callers.Fencing(caller.token), interface
    )
    self._outlets = [
      Outlet(names[i], functools.partial(find, names[i]), caller)
      for i in mixing.out_neighbors(graph, size, index)
    ]

  @property
  def address(self) -> str:
    """The address for its in-neighbors."""
    return self._inlet.address

  @property
  def num_messages(self) -> int:
    """Number of messages received."""
    return self._inlet.num_messages

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
    for one in self._outlets:
      one.put(version, own)
    received = self._inlet.take_unread()
    if not received:
      return None
    now, count = time.monotonic(), len(received)
    self.age_seconds = sum(now - one.arrived_at for one in received) / count
    self.age_steps = sum(version - one.version for one in received) / count
    mixed = mixing.mix(own, [one.vector for one in received], self._weight)
    return mixing.split(mixed, arrays)

  def close(self) -> None:
    """Closes all links and threads."""
    for one in self._outlets:
      one.close()
    self._inlet.close()


def _start(name: str, run: Callable[..., None], *arguments) -> threading.Thread:
  thread = threading.Thread(target=run, args=arguments, name=name, daemon=True)
  thread.start()
  return thread


def _shut(stream: socket.socket) -> None:
  """Ends all waits for a socket, also in other threads."""
  with contextlib.suppress(OSError):
    stream.shutdown(socket.SHUT_RDWR)


def _fill(file: Any, buffer: bytearray | memoryview) -> None:
  """Reads until a buffer is full; raises OSError if the stream ends before."""
  if file.readinto(buffer) < len(buffer):
    raise ConnectionError('The other side has gone.')
