"""Wire format of connections between nodes.

A connection begins with one JSON message each way, which establishes everything
that both sides must know: the caller, specs, names. After that, payloads are
raw bytes:

    header    16 bytes: magic, kind, payload length, microseconds of the last
              round trip (measured by the sender)
    payload   often leaves one after the other, each `[B, ...]` and aligned
"""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Kinds of frames of a handshake; services add their own.
HELLO = 1  # JSON: identity and specs.
WELCOME = 5  # JSON: agreed.
REFUSED = 8  # JSON: the reason; the connection ends.

_HEADER = struct.Struct('<4sBxxxII')
HEADER_SIZE = _HEADER.size
_MAGIC = b'rprt'
# The handshake of an actor with 10,000 environments has about 70 kB. Clients
# without the token can make the server buffer this much each.
MAX_JSON_SIZE = 1 << 18
# Time limit for a handshake. Clients send it immediately; a silent connection
# would occupy a descriptor for ever.
HANDSHAKE_SECONDS = 30.0
_ALIGNMENT = 64

# Shape without `[B]`, and dtype.
LeafSpec = tuple[tuple[int, ...], np.dtype]


class ProtocolError(ValueError):
  """Malformed bytes, or a refused request."""


class Disconnected(Exception):
  """The other side has ended the connection."""


def header(kind: int, size: int, round_trip: float = 0.0) -> bytes:
  """Packs a header; `round_trip` is the time of the last request, in s."""
  microseconds = min(int(round_trip * 1e6), 2**32 - 1)
  return _HEADER.pack(_MAGIC, kind, size, microseconds)


def parse_header(
  data: bytes | bytearray | memoryview,
) -> tuple[int, int, float]:
  """Returns kind, payload size and the seconds of the last round trip.

  Raises:
    ProtocolError: If these bytes are not a header.
  """
  magic, kind, size, microseconds = _HEADER.unpack(data)
  if magic != _MAGIC:
    raise ProtocolError(
      f'A frame must begin with {_MAGIC!r}, got {magic!r}: the other side '
      'uses another protocol, or the stream is out of step.'
    )
  return kind, size, microseconds * 1e-6


def pack_json(kind: int, message: Mapping[str, Any]) -> bytes:
  """Packs a frame of the handshake."""
  payload = json.dumps(message).encode()
  return header(kind, len(payload)) + payload


def parse_json(payload: bytes | bytearray) -> dict[str, Any]:
  """Returns the message of a handshake.

  Raises:
    ProtocolError: If it is not a JSON object.
  """
  try:
    message = json.loads(bytes(payload))
  except (ValueError, RecursionError) as error:
    raise ProtocolError(f'A handshake must be JSON: {error}.') from error
  if not isinstance(message, dict):
    raise ProtocolError(f'A handshake must be a JSON object, got {message!r}.')
  return message


def check_hello(kind: int, size: int) -> None:
  """Raises a ProtocolError if the header is not that of a handshake."""
  if kind != HELLO or size > MAX_JSON_SIZE:
    raise ProtocolError(
      'A connection must begin with a handshake of at most '
      f'{MAX_JSON_SIZE} bytes, got a frame of kind {kind} with {size}.'
    )


def describe(leaves: Sequence[LeafSpec]) -> list:
  """Returns leaf specs as plain values."""
  return [[list(shape), np.dtype(dtype).str] for shape, dtype in leaves]


def make_frame(
  leaves: Sequence[LeafSpec], batch_size: int
) -> tuple[memoryview, list[np.ndarray]]:
  """Allocates a frame of leaves `[batch_size, ...]`, with an aligned payload.

  Returns:
    The frame, and views of its payload's leaves.
  """
  places, size = [], 0
  for shape, dtype in leaves:
    shape = (batch_size, *shape)
    places.append((size, shape, np.dtype(dtype)))
    num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    size += -(-num_bytes // _ALIGNMENT) * _ALIGNMENT
  memory = np.zeros(size + HEADER_SIZE + 2 * _ALIGNMENT, np.uint8)
  payload = -(memory.ctypes.data + HEADER_SIZE) % _ALIGNMENT + HEADER_SIZE
  frame = memory[payload - HEADER_SIZE : payload + size].data
  views = [
    np.ndarray(shape, dtype, frame[HEADER_SIZE:], offset)
    for offset, shape, dtype in places
  ]
  return frame, views
