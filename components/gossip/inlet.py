"""Receiving side of gossip."""

import contextlib
import socket
import threading
from collections.abc import Callable

import numpy as np
from absl import logging

from repertory.components.gossip import mailbox, streams, vectors
from repertory.components.inference import addresses
from repertory.components.runtime import callers, network_interfaces


class Inlet:
  """Receives the messages of neighbors, with a thread for each.

  A neighbor's error ends only its own link. Of a neighbor that was replaced,
  only the newest generation is accepted.

  Attributes:
    address: The address it listens on.
  """

  def __init__(
    self,
    box: mailbox.Mailbox,
    layout: vectors.VectorLayout,
    fencing: callers.Fencing,
    interface: network_interfaces.Interface = network_interfaces.LOOPBACK,
  ):
    """Starts to listen.

    Args:
      box: Mailbox for the messages.
      layout: Expected layout of vectors.
      fencing: Checks callers, with the run's token.
      interface: Network interface to listen on.
    """
    self._box = box
    self._layout = layout
    self._fencing = fencing
    self._is_closed = threading.Event()
    self._lock = threading.Lock()
    self._threads: set[threading.Thread] = set()
    self._links: dict[str, socket.socket] = {}
    self._listener, self.address = addresses.listen(
      addresses.make_address(interface)
    )
    self._listener.settimeout(streams.SLICE_SECONDS)
    self._start(self._accept, 'gossip_inlet')

  def close(self) -> None:
    """Closes all links and threads."""
    self._is_closed.set()
    with self._lock:
      threads = list(self._threads)
    for thread in threads:
      thread.join(streams.JOIN_SECONDS)
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
        self._is_closed.wait(streams.SLICE_SECONDS)
        continue
      if not addresses.is_of_this_user(stream):
        stream.close()
        continue
      stream.settimeout(streams.SLICE_SECONDS)
      self._start(lambda stream=stream: self._serve_link(stream), 'gossip_link')

  def _serve_link(self, stream: socket.socket) -> None:
    """Receives from one neighbor until its link ends."""
    name = ''
    with contextlib.closing(stream):
      try:
        addresses.tune(stream)
        name = self._greet(stream)
        while not self._is_closed.is_set():
          self._take(stream, name)
      except OSError as error:
        if name and not self._is_closed.is_set():
          logging.info('The link from %s ended: %s', name, error)
      finally:
        with self._lock:
          if self._links.get(name) is stream:
            del self._links[name]

  def _greet(self, stream: socket.socket) -> str:
    """Receives a neighbor's handshake, answers it and returns its name.

    Raises:
      ConnectionError: If it is refused.
    """
    try:
      hello = streams.parse_hello(streams.receive_text(stream, self._must_end))
      self._fencing.check(
        callers.Caller(hello['name'], hello['generation'], hello['token'])
      )
      self._box.check(hello['name'])
      if hello['digest'] != self._layout.digest:
        raise streams.RefusedLinkError(
          f'{hello["name"]} must send the variables that are mixed here, got '
          'others. Run the same agent with the same settings on both.'
        )
    except (
      ValueError,
      streams.RefusedLinkError,
      callers.FencedError,
    ) as error:
      with contextlib.suppress(OSError):
        streams.send_text(stream, str(error))
      raise streams.RefusedLinkError(str(error)) from error
    name = hello['name']
    with self._lock:
      before, self._links[name] = self._links.get(name), stream
    if before is not None:
      with contextlib.suppress(OSError):
        before.shutdown(socket.SHUT_RDWR)
    streams.send_text(stream, '')
    return name

  def _take(self, stream: socket.socket, name: str) -> None:
    """Waits for one message and delivers it."""
    header = bytearray(streams.HEADER.size)
    streams.receive_into(
      stream, memoryview(header), self._must_end, is_idle=True
    )
    magic, kind, version, length = streams.HEADER.unpack(header)
    sizes = {streams.VARIABLES: self._layout.num_bytes, streams.END: 0}
    if magic != streams.MAGIC or sizes.get(kind) != length:
      raise ConnectionError(
        f'A message must begin with {streams.MAGIC!r}, a kind and the length '
        f'of the vector, got {bytes(header)!r}.'
      )
    if kind == streams.END:
      self._box.end(name, version)
      return
    vector = np.empty([self._layout.size], self._layout.dtype)
    streams.receive_into(stream, vector.data.cast('B'), self._must_end)
    self._box.put(name, version, vector)

  def _must_end(self) -> bool:
    return self._is_closed.is_set()
