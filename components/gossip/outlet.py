"""Sending side of gossip."""

import collections
import contextlib
import json
import socket
import threading
from collections.abc import Callable

import numpy as np
from absl import logging

from repertory.components.gossip import streams, vectors
from repertory.components.inference import addresses
from repertory.components.runtime import callers

# Delay before a broken link is tried again.
_RETRY_SECONDS = 0.25


# Kind, version and bytes.
_Message = tuple[int, int, bytes | memoryview]


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
    layout: vectors.VectorLayout,
    sends_all: bool = False,
  ):
    """Starts the thread.

    Args:
      neighbor: Name of the receiver.
      find: Returns the neighbor's current address; None if it is not (yet)
        known.
      caller: Identity of the sender.
      layout: Layout of the vectors.
      sends_all: Whether every message is sent, and not only the newest.
    """
    self.neighbor = neighbor
    self._find = find
    self._caller = caller
    self._layout = layout
    self._waiting: collections.deque[_Message] = collections.deque(
      maxlen=None if sends_all else 1
    )
    self._sends_all = sends_all
    self._sending: _Message | None = None
    self._refusal: streams.RefusedLinkError | None = None
    self._is_closed = False
    self._has_changed = threading.Condition()
    self._thread = threading.Thread(
      target=self._run, name=f'gossip_to_{neighbor}', daemon=True
    )
    self._thread.start()

  def put(self, version: int, vector: np.ndarray) -> None:
    """Queues a vector to be sent.

    Args:
      version: The sender's learner steps.
      vector: `[P]`; it must not change afterwards.

    Raises:
      streams.RefusedLinkError: If the neighbor has refused the link.
    """
    if self._refusal is not None:
      raise self._refusal
    with self._has_changed:
      data = vector.data.cast('B')
      self._waiting.append((streams.VARIABLES, version, data))
      self._has_changed.notify_all()

  def end(self, version: int, seconds: float) -> bool:
    """Announces the last version; waits until all messages are sent.

    Only with `sends_all`.

    Args:
      seconds: Maximum time to wait.

    Returns:
      Whether all were sent.
    """
    with self._has_changed:
      self._waiting.append((streams.END, version, b''))
      self._has_changed.notify_all()
      return self._has_changed.wait_for(
        lambda: not (self._waiting or self._sending), seconds
      )

  def close(self) -> None:
    """Ends the thread; unsent messages are lost."""
    with self._has_changed:
      self._is_closed = True
      self._has_changed.notify_all()
    self._thread.join(streams.JOIN_SECONDS)

  def _run(self) -> None:
    while not self._is_closed:
      try:
        self._send_while_linked()
      except streams.RefusedLinkError as error:
        self._refusal = error
        return
      except Exception as error:  # The coordinator may be gone, too.
        logging.info('The link to %s broke: %s', self.neighbor, error)
      self._pause()

  def _send_while_linked(self) -> None:
    """Connects to the neighbor, and sends messages until the link breaks."""
    address = self._find()
    if address is None:
      return
    with contextlib.closing(
      addresses.connect(address, streams.TIMEOUT_SECONDS)
    ) as stream:
      stream.settimeout(streams.SLICE_SECONDS)
      hello = {**self._caller._asdict(), 'digest': self._layout.digest}
      streams.send_text(stream, json.dumps(hello))
      refusal = streams.receive_text(stream, self._must_end)
      if refusal:
        raise streams.RefusedLinkError(refusal)
      while (message := self._next(stream)) is not None:
        kind, version, data = message
        header = streams.HEADER.pack(streams.MAGIC, kind, version, len(data))
        streams.send_all(stream, header, self._must_end)
        streams.send_all(stream, data, self._must_end)
        with self._has_changed:
          self._sending = None
          self._has_changed.notify_all()

  def _next(self, stream: socket.socket) -> _Message | None:
    """Waits for the next message; returns None at the end.

    Raises:
      ConnectionError: If the neighbor has gone meanwhile.
    """
    while not self._is_closed:
      with self._has_changed:
        if self._waiting:
          self._sending = self._waiting.popleft()
          return self._sending
        self._has_changed.wait(streams.SLICE_SECONDS)
      streams.check_open(stream)
    return None

  def _pause(self) -> None:
    with self._has_changed:
      unsent, self._sending = self._sending, None
      if unsent is not None and self._sends_all:
        self._waiting.appendleft(unsent)
      self._has_changed.wait_for(lambda: self._is_closed, _RETRY_SECONDS)

  def _must_end(self) -> bool:
    return self._is_closed
