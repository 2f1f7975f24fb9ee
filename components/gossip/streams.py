"""Wire format of gossip between neighbors.

A link goes one way, over an address of `inference.addresses`. It begins with a
JSON object with the sender's identity and a digest of its layout; the answer is
empty, or the reason of a refusal. Then come messages: 24 bytes (magic, kind,
version, length) and a vector's raw bytes. They are not acknowledged.
"""

import contextlib
import json
import math
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

MAGIC = b'gssp'
HEADER = struct.Struct('<4sIqQ')
VARIABLES, END = 1, 2

_LENGTH = struct.Struct('<I')
_MAX_TEXT_BYTES = 1 << 16

# Interval at which waiting threads check whether to end.
SLICE_SECONDS = 0.2
# Time limit for a handshake, and for sending or receiving a message.
TIMEOUT_SECONDS = 20.0
JOIN_SECONDS = 5.0

_TYPES = {'name': str, 'generation': int, 'token': str, 'digest': str}


class RefusedLinkError(ConnectionError):
  """The other side refuses the link."""


def parse_hello(text: str) -> dict[str, Any]:
  """Parses a sender's handshake.

  Raises:
    RefusedLinkError: If it is malformed.
  """
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


def send_text(stream: socket.socket, text: str) -> None:
  """Sends text with its length."""
  data = text.encode()
  stream.sendall(_LENGTH.pack(len(data)) + data)


def receive_text(stream: socket.socket, must_end: Callable[[], bool]) -> str:
  """Receives text that `send_text` sent, within `TIMEOUT_SECONDS`.

  Args:
    must_end: Called repeatedly; True ends the wait.

  Raises:
    ConnectionError: If the other side has gone or is too slow, or the wait must
      end.
  """
  deadline = time.monotonic() + TIMEOUT_SECONDS
  length = bytearray(_LENGTH.size)
  receive_into(stream, memoryview(length), must_end, deadline=deadline)
  (size,) = _LENGTH.unpack(length)
  if size > _MAX_TEXT_BYTES:
    raise ConnectionError(
      f'A link must begin with at most {_MAX_TEXT_BYTES} bytes, got {size}.'
    )
  data = bytearray(size)
  receive_into(stream, memoryview(data), must_end, deadline=deadline)
  return data.decode(errors='replace')


def send_all(
  stream: socket.socket, data: Any, must_end: Callable[[], bool]
) -> None:
  """Sends bytes, as fast as the other side takes them.

  Args:
    data: Bytes, or a view of some.
    must_end: Called repeatedly; True ends the wait.

  Raises:
    ConnectionError: If the other side has gone or takes no data, or the wait
      must end.
  """
  view, waited = memoryview(data), 0.0
  while view:
    try:
      view, waited = view[stream.send(view) :], 0.0
    except TimeoutError:
      waited += SLICE_SECONDS
      if must_end() or waited > TIMEOUT_SECONDS:
        raise ConnectionError(f'{len(view)} bytes were not taken.') from None


def receive_into(
  stream: socket.socket,
  view: memoryview,
  must_end: Callable[[], bool],
  is_idle: bool = False,
  deadline: float = math.inf,
) -> None:
  """Fills a buffer.

  Args:
    must_end: Called repeatedly; True ends the wait.
    is_idle: Whether the wait for the first byte is unlimited.
    deadline: Time by `time.monotonic` at which the view must be full. By
      default, only the wait for each read is limited, to `TIMEOUT_SECONDS`.

  Raises:
    ConnectionError: If the other side has gone or is too slow, or the wait must
      end.
  """
  filled, waited = 0, 0.0
  while filled < len(view):
    try:
      count = stream.recv_into(view[filled:])
    except TimeoutError:
      waited += 0.0 if is_idle and not filled else SLICE_SECONDS
      if must_end() or waited > TIMEOUT_SECONDS:
        raise ConnectionError(f'{filled} of {len(view)} bytes came.') from None
      count = None
    if time.monotonic() > deadline:
      raise ConnectionError(f'{filled} of {len(view)} bytes came in time.')
    if count is None:
      continue
    if not count:
      raise ConnectionError('The other side has gone.')
    filled, waited = filled + count, 0.0


def check_open(stream: socket.socket) -> None:
  """Raises ConnectionError if the other side, which sends nothing, has gone."""
  stream.setblocking(False)
  try:
    if not stream.recv(1, socket.MSG_PEEK):
      raise ConnectionError('The other side has gone.')
  except BlockingIOError:
    pass
  finally:
    stream.settimeout(SLICE_SECONDS)
