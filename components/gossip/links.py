"""Links between gossip neighbors: receiver, sender and wire format.

A link goes one way, over an address of `inference.addresses`. It begins with a
JSON object with the sender's identity and a digest of its layout; the answer is
empty, or the reason of a refusal. Then come messages: 20 bytes (magic, version,
length) and a vector's raw bytes. They are not acknowledged.
"""

import contextlib
import json
import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from repertory.components.gossip import mixing
from repertory.components.inference import addresses
from repertory.components.runtime import callers, network_interfaces

_MAGIC = b'gssp'
_HEADER = struct.Struct('<4sqQ')
_LENGTH = struct.Struct('<I')
_MAX_TEXT_BYTES = 1 << 16

# Interval at which waiting threads check whether to end.
_SLICE_SECONDS = 0.2
# Time limit for a handshake, and for sending or receiving a message.
TIMEOUT_SECONDS = 20.0
_JOIN_SECONDS = 5.0
# Delay before a broken link is tried again.
_RETRY_SECONDS = 0.25

_TYPES = {'name': str, 'generation': int, 'token': str, 'digest': str}


class RefusedLinkError(ConnectionError):
  """The other side refuses the link."""


class Message(NamedTuple):
  """A neighbor's variables at one of its learner steps.

  Attributes:
    version: Its learner steps.
    vector: Its variables, `[P]`; see `mixing.VectorLayout`.
    arrived_at: Local time of arrival, in seconds.
  """

  version: int
  vector: np.ndarray
  arrived_at: float


class _Link:
  """A connected socket, whose waits end once its owner is closed.

  All methods raise ConnectionError if the other side has gone or is too slow,
  or the owner is closed.
  """

  def __init__(self, stream: socket.socket, is_closed: threading.Event):
    stream.settimeout(_SLICE_SECONDS)
    self.stream = stream
    self._is_closed = is_closed

  def send(self, data: bytes | memoryview) -> None:
    """Sends bytes, as fast as the other side takes them."""
    view, waited = memoryview(data), 0.0
    while view:
      try:
        view, waited = view[self.stream.send(view) :], 0.0
      except TimeoutError:
        waited += _SLICE_SECONDS
        if self._is_closed.is_set() or waited > TIMEOUT_SECONDS:
          raise ConnectionError(f'{len(view)} bytes were not taken.') from None

  def receive(
    self, view: memoryview, *, is_idle: bool = False, deadline: float = math.inf
  ) -> None:
    """Fills a buffer.

    Args:
      is_idle: Whether the wait for the first byte is unlimited.
      deadline: Time by `time.monotonic` at which the view must be full. By
        default, only the wait for each read is limited.
    """
    filled, waited = 0, 0.0
    while filled < len(view):
      try:
        count = self.stream.recv_into(view[filled:])
        if not count:
          raise ConnectionError('The other side has gone.')
        filled, waited = filled + count, 0.0
      except TimeoutError:
        waited += 0.0 if is_idle and not filled else _SLICE_SECONDS
        if self._is_closed.is_set() or waited > TIMEOUT_SECONDS:
          raise ConnectionError(
            f'{filled} of {len(view)} bytes came.'
          ) from None
      if time.monotonic() > deadline:
        raise ConnectionError(f'{filled} of {len(view)} bytes came in time.')

  def send_text(self, text: str) -> None:
    data = text.encode()
    self.send(_LENGTH.pack(len(data)) + data)

  def receive_text(self) -> str:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    length = bytearray(_LENGTH.size)
    self.receive(memoryview(length), deadline=deadline)
    (size,) = _LENGTH.unpack(length)
    if size > _MAX_TEXT_BYTES:
      raise ConnectionError(
        f'A link must begin with at most {_MAX_TEXT_BYTES} bytes, got {size}.'
      )
    data = bytearray(size)
    self.receive(memoryview(data), deadline=deadline)
    return data.decode(errors='replace')

  def check_open(self) -> None:
    """Checks that the other side, which sends nothing, has not gone."""
    self.stream.setblocking(False)
    try:
      if not self.stream.recv(1, socket.MSG_PEEK):
        raise ConnectionError('The other side has gone.')
    except BlockingIOError:
      pass
    finally:
      self.stream.settimeout(_SLICE_SECONDS)


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
    layout: mixing.VectorLayout,
    fencing: callers.Fencing,
    interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
  ):
    """Starts to listen.

    Args:
      neighbors: Names of the senders.
      layout: Expected layout of vectors.
      fencing: Checks callers, with the run's token.
      interface: Network interface to listen on.
    """
    self.num_messages = 0
    self._neighbors = list(neighbors)
    self._layout = layout
    self._fencing = fencing
    self._is_closed = threading.Event()
    self._lock = threading.Lock()
    self._unread: dict[str, Message] = {}
    self._threads: set[threading.Thread] = set()
    self._streams: dict[str, socket.socket] = {}
    self._listener, self.address = addresses.listen(
      addresses.make_address(interface)
    )
    self._listener.settimeout(_SLICE_SECONDS)
    self._start(self._accept, 'gossip_inlet')

  def take_unread(self) -> list[Message]:
    """Returns the newest unread message of each neighbor, in their order."""
    with self._lock:
      unread, self._unread = self._unread, {}
    return [unread[name] for name in self._neighbors if name in unread]

  def close(self) -> None:
    """Closes all links and threads."""
    self._is_closed.set()
    with self._lock:
      threads = list(self._threads)
    for thread in threads:
      thread.join(_JOIN_SECONDS)
    self._listener.close()

  def _start(self, run: Callable[[], None], name: str) -> None:
    thread = threading.Thread(target=run, name=name, daemon=True)
    with self._lock:
      self._threads = {one for one in self._threads if one.is_alive()}
      self._threads.add(thread)
      thread.start()

  def _accept(self) -> None:
    while not self._is_closed.is_set():
      try:
        stream, _ = self._listener.accept()
      except TimeoutError:
        continue
      except OSError as error:  # Such as too many open files.
        logging.warning('Could not accept a neighbor: %s', error)
        self._is_closed.wait(_SLICE_SECONDS)
        continue
      if addresses.is_of_this_user(stream):
        self._start(lambda stream=stream: self._serve(stream), 'gossip_link')
      else:
        stream.close()

  def _serve(self, stream: socket.socket) -> None:
    """Receives from one neighbor until its link ends."""
    name, link = '', _Link(stream, self._is_closed)
    with contextlib.closing(stream):
      try:
        addresses.tune(stream)
        name = self._greet(link)
        while not self._is_closed.is_set():
          self._take(link, name)
      except OSError as error:
        if name and not self._is_closed.is_set():
          logging.info('The link from %s ended: %s', name, error)
      finally:
        with self._lock:
          if self._streams.get(name) is stream:
            del self._streams[name]

  def _greet(self, link: _Link) -> str:
    """Receives a neighbor's handshake, answers it and returns its name."""
    try:
      hello = _parse_hello(link.receive_text())
      name = hello['name']
      self._fencing.check(
        callers.Caller(name, hello['generation'], hello['token'])
      )
      if name not in self._neighbors:
        raise RefusedLinkError(
          f'neighbor must be one of {self._neighbors}, got {name!r}.'
        )
      if hello['digest'] != self._layout.digest:
        raise RefusedLinkError(
          f'{name} must send the variables that are mixed here, got others. '
          'Run the same agent with the same settings on both.'
        )
    except (RefusedLinkError, callers.FencedError) as error:
      with contextlib.suppress(OSError):
        link.send_text(str(error))
      raise RefusedLinkError(str(error)) from error
    with self._lock:
      before, self._streams[name] = self._streams.get(name), link.stream
    if before is not None:
      with contextlib.suppress(OSError):
        before.shutdown(socket.SHUT_RDWR)
    link.send_text('')
    return name

  def _take(self, link: _Link, name: str) -> None:
    """Waits for one message and keeps it."""
    header = bytearray(_HEADER.size)
    link.receive(memoryview(header), is_idle=True)
    magic, version, length = _HEADER.unpack(header)
    if (magic, length) != (_MAGIC, self._layout.num_bytes):
      raise ConnectionError(
        f'A message must begin with {_MAGIC!r} and the length of the vector, '
        f'got {bytes(header)!r}.'
      )
    vector = np.empty([self._layout.size], self._layout.dtype)
    link.receive(vector.data.cast('B'))
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
    layout: mixing.VectorLayout,
  ):
    """Starts the thread.

    Args:
      neighbor: Name of the receiver.
      find: Returns the neighbor's current address; None if it is not (yet)
        known.
      caller: Identity of the sender.
      layout: Layout of the vectors.
    """
    self._neighbor = neighbor
    self._find = find
    self._hello = json.dumps({**caller._asdict(), 'digest': layout.digest})
    self._newest: tuple[int, memoryview] | None = None
    self._refusal: RefusedLinkError | None = None
    self._is_closed = threading.Event()
    self._has_come = threading.Event()
    self._thread = threading.Thread(
      target=self._run, name=f'gossip_to_{neighbor}', daemon=True
    )
    self._thread.start()

  def put(self, version: int, vector: np.ndarray) -> None:
    """Sets the vector to send next.

    Args:
      version: The sender's learner steps.
      vector: `[P]`; it must not change afterwards.

    Raises:
      RefusedLinkError: If the neighbor has refused the link.
    """
    if self._refusal is not None:
      raise self._refusal
    self._newest = version, vector.data.cast('B')
    self._has_come.set()

  def close(self) -> None:
    """Ends the thread; unsent messages are lost."""
    self._is_closed.set()
    self._has_come.set()
    self._thread.join(_JOIN_SECONDS)

  def _run(self) -> None:
    while not self._is_closed.is_set():
      try:
        self._send_while_linked()
      except RefusedLinkError as error:
        self._refusal = error
        return
      except Exception as error:  # The coordinator may be gone, too.
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
      link = _Link(stream, self._is_closed)
      link.send_text(self._hello)
      if refusal := link.receive_text():
        raise RefusedLinkError(refusal)
      while not self._is_closed.is_set():
        if not self._has_come.wait(_SLICE_SECONDS):
          link.check_open()
          continue
        self._has_come.clear()
        newest, self._newest = self._newest, None
        if newest is not None:
          version, data = newest
          link.send(_HEADER.pack(_MAGIC, version, len(data)))
          link.send(data)


def _parse_hello(text: str) -> dict[str, Any]:
  with contextlib.suppress(ValueError, RecursionError):
    hello = json.loads(text)
    if isinstance(hello, dict) and all(
      isinstance(hello.get(name), kind) for name, kind in _TYPES.items()
    ):
      return hello
  raise RefusedLinkError(
    f'A link must begin with a JSON object of {list(_TYPES)}, got '
    f'{text[:200]!r}.'
  )
